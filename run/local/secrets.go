package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/model/workload"
)

// KeepSecrets moves the variables of a submission whose names speak of secrets out
// of the job, so that they never reach the journal, into a file that only the
// control plane reads. The job's runs get them back.
func (d *Driver) KeepSecrets(j *workload.Job) error {
	var secrets []string
	kept := j.Env[:0:0]
	for _, kv := range j.Env {
		name, _, _ := strings.Cut(kv, "=")
		if secretName(name) {
			secrets = append(secrets, kv)
		} else {
			kept = append(kept, kv)
		}
	}
	file := d.secretsFile(j.Name)
	if len(secrets) == 0 {
		// None of an earlier job of this name, which was refused, may reach this one.
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing old secrets of %s: %w", j.Name, err)
		}
		return nil
	}
	data, err := json.Marshal(secrets)
	if err != nil {
		return fmt.Errorf("keeping the secrets of %s: %w", j.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("keeping the secrets of %s: %w", j.Name, err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("keeping the secrets of %s: %w", j.Name, err)
	}
	j.Env = kept
	return nil
}

// secrets reads back what KeepSecrets kept.
func (d *Driver) secrets(name string) ([]string, error) {
	data, err := os.ReadFile(d.secretsFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the secrets of %s: %w", name, err)
	}
	var secrets []string
	if err := json.Unmarshal(data, &secrets); err != nil {
		return nil, fmt.Errorf("reading the secrets of %s: %w", name, err)
	}
	return secrets, nil
}

func (d *Driver) secretsFile(name string) string {
	return filepath.Join(d.config.State, "secrets", name+".json")
}

// secretName reports whether a variable's name speaks of a secret.
func secretName(name string) bool {
	for _, word := range []string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "PRIVATE_KEY"} {
		if strings.Contains(strings.ToUpper(name), word) {
			return true
		}
	}
	return false
}
