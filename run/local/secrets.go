package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/workload"
)

// KeepSecrets moves the variables of a submission that are secrets, by its own word or by
// what they look like, out of the job, so that they never reach the journal, into a file
// that only the control plane reads. The job's runs get them back.
func (d *Driver) KeepSecrets(j *workload.Job) error {
	var secrets []string
	kept := j.Env[:0:0]
	for _, kv := range j.Env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(j.Secrets, name) || secretName(name) || passwordIn(value) || secretValue(value) {
			secrets = append(secrets, kv)
		} else {
			kept = append(kept, kv)
		}
	}
	file := d.secretsFile(j.ArrayName(), j.Array > 1 || j.Copy > 0)
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

// secrets reads back what KeepSecrets kept of a job, or of the array that it is a copy of.
func (d *Driver) secrets(j *workload.Job) ([]string, error) {
	name := j.ArrayName()
	data, err := os.ReadFile(d.secretsFile(name, j.Copy > 0))
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

// secretsFile is where they are; a job may have the name of an array.
func (d *Driver) secretsFile(name string, array bool) string {
	if array {
		name += "[]"
	}
	return filepath.Join(d.config.State, "secrets", name+".json")
}

// secretName reports whether a variable's name speaks of a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	says := func(word string) bool { return strings.Contains(name, word) }
	// A part of a name, as in GITHUB_PAT, which is no part of a word, as in PATH.
	part := func(word string) bool { return slices.Contains(strings.Split(name, "_"), word) }
	key := strings.HasSuffix(name, "KEY") || says("KEY_ID")
	password := strings.HasSuffix(name, "PWD") && name != "PWD" && name != "OLDPWD"
	return key || password || slices.ContainsFunc([]string{"SECRET", "TOKEN", "PASS", "CREDENTIAL", "AUTH", "DSN", "COOKIE"}, says) ||
		slices.ContainsFunc([]string{"PAT", "PW", "JWT", "BEARER"}, part)
}

// secretForms are how the values of secrets begin: headers, keys in PEM, and tokens that their makers mark so that they can
// be found.
var secretForms = regexp.MustCompile(`^(?i:bearer|basic|token) +[A-Za-z0-9._~+/=-]{8,}$|-----BEGIN [A-Z ]*PRIVATE KEY-----|` +
	`\b(gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|npm_|pypi-|dop_v1_)[A-Za-z0-9_-]{16,}|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|` +
	`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)

// secretValue reports whether a value has the form of a secret, whatever its name.
func secretValue(value string) bool { return secretForms.MatchString(value) }

// passwordIn reports whether a value is an address with a password.
func passwordIn(value string) bool {
	_, rest, found := strings.Cut(value, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	who, _, at := strings.Cut(rest, "@")
	return found && at && strings.Contains(who, ":")
}
