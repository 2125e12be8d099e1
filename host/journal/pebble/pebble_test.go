package pebble

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/conformance"
)

func TestConformance(t *testing.T) {
	for _, test := range []struct {
		name    string
		storage func(t *testing.T) (vfs.FS, string)
	}{
		{"memory", func(*testing.T) (vfs.FS, string) { return vfs.NewMem(), "/j" }},
		{"disk", func(t *testing.T) (vfs.FS, string) { return vfs.Default, t.TempDir() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) conformance.Open {
				fs, dir := test.storage(t)
				return func(t *testing.T) journal.Journal {
					j, err := Open(dir, Options{FS: fs})
					if err != nil {
						t.Fatal(err)
					}
					return j
				}
			})
		})
	}
}

// TestForeignStore: a store that is no journal is left alone.
func TestForeignStore(t *testing.T) {
	fs := vfs.NewMem()
	options := &pebble.Options{FS: fs, FormatMajorVersion: storeFormat}
	db, err := pebble.Open("/j/store", options)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Set([]byte("somebody's"), []byte("data"), pebble.Sync)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("/j", Options{FS: fs}); !errors.Is(err, journal.ErrFormat) {
		t.Errorf("error %v, want %v", err, journal.ErrFormat)
	}
}
