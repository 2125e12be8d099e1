package pebble

import (
	"testing"

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
