package pebble

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/host/journal"
)

const (
	witnessName   = "witness"
	witnessHeader = "heddle-journal witness 1"
)

// witnessEntry is how far a graph had come when the witness was written: a lower
// bound of where its head must be.
type witnessEntry struct {
	opening  uint64
	revision uint64
	hash     journal.Hash
}

// String is for messages.
func (e witnessEntry) String() string {
	return fmt.Sprintf("opening %d, revision %d, hash %x…", e.opening, e.revision, e.hash[:8])
}

// witness is the file beside the store that remembers how far each graph had
// come, for a store that lost its newest files opens without complaint. It is
// written when a graph opens, is dropped or trimmed, and at Close: never on the
// way of a write.
type witness struct {
	turn    chan struct{}           // of writing the file
	absent  bool                    // there was no file at Open
	entries map[string]witnessEntry // guarded by mu
	mu      *sync.Mutex
}

func (w *witness) get(name string) (witnessEntry, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.entries[name]
	return e, ok
}

func (w *witness) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.entries))
}

// appendWitness appends the file's bytes.
//
// Source: docs/formats/journal.md, "Witness".
func appendWitness(dst []byte, entries map[string]witnessEntry) []byte {
	start := len(dst)
	dst = append(dst, witnessHeader...)
	dst = append(dst, '\n')
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		dst = fmt.Appendf(dst, "%s %d %d %x\n", name, e.opening, e.revision, e.hash)
	}
	return fmt.Appendf(dst, "crc32c %08x\n", journal.Checksum(dst[start:]))
}

// parseWitness reads the file's bytes.
//
// Source: docs/formats/journal.md, "Witness".
func parseWitness(b []byte) (map[string]witnessEntry, error) {
	end := bytes.LastIndex(b, []byte("crc32c "))
	if end < 0 || string(b[end:]) != fmt.Sprintf("crc32c %08x\n", journal.Checksum(b[:end])) {
		return nil, errors.New("its CRC-32C is missing or wrong")
	}
	lines := strings.Split(strings.TrimSuffix(string(b[:end]), "\n"), "\n")
	if lines[0] != witnessHeader {
		return nil, fmt.Errorf("it begins with %q, expected %q", lines[0], witnessHeader)
	}
	entries := map[string]witnessEntry{}
	for i, line := range lines[1:] {
		name, e, err := parseWitnessLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		entries[name] = e
	}
	return entries, nil
}

func parseWitnessLine(line string) (name string, e witnessEntry, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return "", e, fmt.Errorf("%d fields, expected 4", len(fields))
	}
	if err := journal.CheckName(fields[0]); err != nil {
		return "", e, err
	}
	if e.opening, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
		return "", e, err
	}
	if e.opening > journal.OpeningMax {
		return "", e, fmt.Errorf("opening %d, at most %d", e.opening, journal.OpeningMax)
	}
	if e.revision, err = strconv.ParseUint(fields[2], 10, 64); err != nil {
		return "", e, err
	}
	if len(fields[3]) != 2*len(e.hash) {
		return "", e, fmt.Errorf("hash of %d characters, expected %d",
			len(fields[3]), 2*len(e.hash))
	}
	_, err = hex.Decode(e.hash[:], []byte(fields[3]))
	return fields[0], e, err
}

// readWitness reads the witness of the journal in dir. None is an empty one.
func readWitness(fs vfs.FS, dir string) (witness, error) {
	w := witness{turn: newTurn(), mu: new(sync.Mutex)}
	path := fs.PathJoin(dir, witnessName)
	b, err := readFile(fs, path)
	if errors.Is(err, os.ErrNotExist) {
		w.entries, w.absent = map[string]witnessEntry{}, true
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("witness: %w", err)
	}
	if w.entries, err = parseWitness(b); err != nil {
		return w, &journal.DamageError{
			Kind: journal.ErrCorrupt, Where: path, Cause: err,
			Remedy: "look whether the disk is sound; " +
				"if it is, remove this file to go on without it",
		}
	}
	return w, nil
}

// writeWitness writes where all graphs are now. A graph that this process did
// not open, or that is damaged, keeps its entry. without names a graph to leave
// out; "" names none.
func (j *Journal) writeWitness(without string) error {
	w := &j.witness
	w.turn <- struct{}{} // whatever becomes of the caller: what it waits for is short
	defer func() { <-w.turn }()
	entries := map[string]witnessEntry{}
	j.mu.Lock()
	for name, g := range j.graphs {
		if name == without {
			continue
		}
		h := g.currentHead()
		if g.broken == nil && h.Opening > 0 && g.checked.Load() {
			entries[name] = witnessEntry{h.Opening, h.Revision, h.Hash}
		} else if e, ok := w.get(name); ok {
			entries[name] = e
		}
	}
	j.mu.Unlock()
	if err := j.replaceFile(witnessName, appendWitness(nil, entries)); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	w.mu.Lock()
	w.entries = entries
	w.mu.Unlock()
	return nil
}

// forget writes the witness without a graph that is to be dropped.
func (j *Journal) forget(g *graph) error {
	checked := g.checked.Swap(false) // nor does anybody write it again
	err := j.writeWitness(g.name)
	if err != nil {
		g.checked.Store(checked)
	}
	return err
}

// replaceFile writes a file beside the store so that a crash leaves the old one
// or the new one.
func (j *Journal) replaceFile(name string, b []byte) error {
	path, fresh := j.fs.PathJoin(j.dir, name), j.fs.PathJoin(j.dir, name+".new")
	f, err := j.fs.Create(fresh, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := j.fs.Rename(fresh, path); err != nil {
		return err
	}
	return syncDir(j.fs, j.dir)
}

// checkWitness holds the head of a graph in the store against the witness.
func (j *Journal) checkWitness(name string, h head) error {
	e, ok := j.witness.get(name)
	behind := h.Opening < e.opening || h.Revision < e.revision ||
		h.Revision == e.revision && h.Hash != e.hash
	if !ok || !behind {
		return nil
	}
	is := witnessEntry{h.Opening, h.Revision, h.Hash}
	return &journal.DamageError{
		Kind: journal.ErrGap, Graph: name, Where: "the store",
		What: fmt.Sprintf(
			"it holds the graph at %v, which has been at %v: newest files are missing", is, e),
		Remedy: fmt.Sprintf(
			"restore %s from a backup; or remove the file %s in it to accept the loss",
			j.dir, witnessName),
	}
}
