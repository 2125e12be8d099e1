package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// adminKeyName is the file of the data directory that keeps a key that was made.
const adminKeyName = "admin.key"

// AdminKeyFile returns the path of the file with the admin key of a data directory.
func AdminKeyFile(dataDir string) string { return filepath.Join(dataDir, adminKeyName) }

// EnsureAdminKey returns c.AdminKey or, if that is empty, the key in the data
// directory's file, which it makes with a random key of 256 bits and for its
// owner's eyes only if there is none. The data directory is made as well.
func EnsureAdminKey(c *Config) (string, error) {
	if c.AdminKey != "" {
		return c.AdminKey, nil
	}
	path := AdminKeyFile(c.DataDir)
	key, err := ReadAdminKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	key = base64.RawURLEncoding.EncodeToString(random[:])
	// Renamed into place, so that a crash leaves no half key.
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	return key, nil
}

// ReadAdminKey returns the key that a file holds. It wraps fs.ErrNotExist if
// there is no file, and refuses one that other users may read.
func ReadAdminKey(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("admin key: %s may be read by others (mode %04o); "+
			"make it 0600, or remove it for a new key", path, info.Mode().Perm())
	}
	b, err := readLimited(path)
	if err != nil {
		return "", fmt.Errorf("admin key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if !isKey(key) {
		return "", fmt.Errorf("admin key: %s does not hold one; remove it for a new key", path)
	}
	return key, nil
}
