// Package scenario reads and plays scenarios, which say what a program should do:
// given facts, what is written, and the rows, changes and refusals to expect. Each
// plays on an engine of its own, without server, journal or clock. The package reads
// no file and prints nothing; the command heddle test does both.
//
// docs/rules/testing.md describes the format.
package scenario

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// Limits of a file. What exceeds one is an error.
const (
	sourceBytesMax = parse.SourceBytesMax
	testsMax       = 1000
)

// File is a file of scenarios, checked against a program. It is immutable: each Run
// of a test begins anew.
type File struct {
	Tests []Test
}

// Test is one scenario.
type Test struct {
	Name string
	Line int

	program  *analysis.Program
	seedless bool
	steps    []step
}

// Result tells how a test went.
type Result struct {
	Failures []Failure // none if it passed
}

// Failure is an expectation that was not met, or a step that was refused.
type Failure struct {
	Line int    // of the step
	Step string // its first line
	Text string // what is wrong; several lines, without a line end behind the last
}

// verb is what a step does.
type verb uint8

const (
	given verb = iota
	write
	call
	watch
	unwatch
	clock
	expectRows
	expectChanges
	expectErrors
	expectRefused
	expectWritten
)

// step is one line of a scenario with the lines that belong to it, checked.
type step struct {
	verb verb
	line int
	text string // the first line

	statements []analysis.Statement // of given, write and call
	parameters []value.Value        // of a call
	refused    bool                 // of write and call: an expectRefused follows

	target target
	rows   []row        // expected
	doubt  engine.Doubt // expected of the rows
	// messages are parts of the row errors that are expected.
	messages []string
	message  string // of expectRefused: a part of the message
	// Of expectWritten.
	inserted, deleted int

	millis int64 // of clock
}

// target is what rows or changes are expected of: a view at a key, or a query.
type target struct {
	view  string
	key   []value.Value
	part  int
	query *analysis.Query // nil for a view
	name  string          // view, key and part, or the query, as people read it
}

// id tells keys apart.
func (t *target) id() string { return spell(t.view, t.key) }

// row is an expected row; of changes, one that enters or leaves.
type row struct {
	sign  byte // '+' or '-' in changes, else 0
	cells []value.Value
}

// String spells the row as a file does.
func (r row) String() string {
	text := spell("", r.cells)
	if r.sign != 0 {
		return string(r.sign) + " " + text
	}
	return text
}

// spell spells a name with values behind it.
func spell(name string, values []value.Value) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

func compareRows(a, b row) int {
	for i := range min(len(a.cells), len(b.cells)) {
		if c := value.Compare(a.cells[i], b.cells[i]); c != 0 {
			return c
		}
	}
	return int(b.sign) - int(a.sign) // '-' is larger than '+': what left comes first
}

// counted spells a number with its noun: 1 row, 2 rows.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
