package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoginFile is where the XDG conventions put what muster login was told.
func LoginFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the directory of settings: %w", err)
	}
	return filepath.Join(dir, "muster", "login.json"), nil
}

// Login reads what was stored; ok is whether there is anything. A file that others
// can read is refused: it has a token in it.
func Login(path string) (r Remote, ok bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("reading the login: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return r, false, fmt.Errorf("%s can be read by others, and has a token in it: chmod 600 it, and have the token revoked if others were there", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, false, fmt.Errorf("reading the login: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, false, fmt.Errorf("reading the login: %s: %w", path, err)
	}
	return r, true, nil
}

// SaveLogin stores a login for its owner only.
func SaveLogin(path string, r Remote) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the login: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("storing the login: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".login-*") // for its owner only
	if err != nil {
		return fmt.Errorf("storing the login: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("storing the login: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
