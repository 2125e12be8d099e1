// Package golden holds bytes against vector files that a flag rewrites and a
// person reviews. Tests of the journal's formats call it.
package golden

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the vector files")

// hexLineBytes is how many bytes a line of a vector shows.
const hexLineBytes = 32

// Vector is one file: what it shows, the bytes, and what they decode to.
type Vector struct {
	Comment string
	Bytes   []byte
	Fields  string // lines
}

func (v Vector) text() string {
	var b strings.Builder
	b.WriteString("# " + v.Comment + "\n")
	rest := v.Bytes
	for len(rest) > 0 {
		n := min(hexLineBytes, len(rest))
		b.WriteString(hex.EncodeToString(rest[:n]) + "\n")
		rest = rest[n:]
	}
	b.WriteString("\n" + strings.TrimRight(v.Fields, "\n") + "\n")
	return b.String()
}

// Check compares v with testdata/1/<name>.txt, or writes that file with -update.
func Check(t *testing.T, name string, v Vector) {
	t.Helper()
	path := filepath.Join("testdata", "1", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(v.text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.text(); got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}
