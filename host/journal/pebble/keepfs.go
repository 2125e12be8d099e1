package pebble

import (
	"errors"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keepFS is the store's file system: it keeps the data files that the store
// wants removed until the graphs were found to be where the witness says. A
// damaged manifest makes the store believe that its tables are superfluous, and
// an operator who is told so still wants to have them. The store never uses the
// name of a data file twice.
type keepFS struct {
	vfs.FS

	mu      sync.Mutex
	allowed bool
	waiting []string
}

// Unwrap returns the file system below.
func (k *keepFS) Unwrap() vfs.FS { return k.FS }

// Remove removes a file, a data file perhaps later.
func (k *keepFS) Remove(name string) error {
	if !isData(path.Base(name)) {
		return k.FS.Remove(name)
	}
	k.mu.Lock()
	allowed := k.allowed
	if !allowed {
		k.waiting = append(k.waiting, name)
	}
	k.mu.Unlock()
	if !allowed {
		return nil
	}
	return k.FS.Remove(name)
}

// isData reports whether a file of the store holds what users wrote.
func isData(name string) bool {
	switch path.Ext(name) {
	case ".sst", ".blob", ".log":
		return true
	}
	return strings.HasPrefix(name, "MANIFEST-")
}

// allow removes what has waited, and lets each further file go at once.
func (k *keepFS) allow() error {
	k.mu.Lock()
	k.allowed = true
	waiting := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	for _, name := range waiting {
		if err := k.FS.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
