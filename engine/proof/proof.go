// Package proof says why a query has a row, as a tree of facts and rules, and why it
// has none, as the first condition that fails in each rule. It derives nothing
// itself: a Model, which package engine is, answers what holds. What it says depends
// on the facts and the program only, and is bounded.
package proof

import (
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// Model answers what holds in one state of a graph.
type Model interface {
	// Program is what the graph's rules are.
	Program() *analysis.Program
	// Ask answers a query over the program, or over one with further derived relations:
	// at most most rows, in the query's order, and how many rows there are.
	Ask(p *analysis.Program, q *analysis.Query, parameters []value.Value, most int) (
		rows [][]value.Value, count int, err error)
	// Trace derives the rows of a query at each of the keys, with all that they are
	// derived from.
	Trace(q *analysis.Query, keys [][]value.Value) (Trace, error)
}

// Trace finds what was derived on the way to some rows.
type Trace interface {
	// Match calls yield with the known rows that agree with a pattern, in which values
	// of Kind Invalid stand for any, until yield returns false. The row may be kept.
	Match(id analysis.RelationID, pattern []value.Value,
		yield func(row []value.Value, age dataflow.Age) bool)
	// Err returns the error of a limit that was reached; then rows may be missing.
	Err() error
}

// Limits bounds an explanation. A zero field means its default.
type Limits struct {
	Rows    int // of the query that are proved: 1
	Nodes   int // of the explanation: 200
	Matches int // of an aggregate, or rows that it gives instead, that are shown: 5
	Levels  int // of rules under a missing row: 4
}

func (l Limits) withDefaults() Limits {
	set := func(at *int, to int) {
		if *at <= 0 {
			*at = to
		}
	}
	set(&l.Rows, 1)
	set(&l.Nodes, 200)
	set(&l.Matches, 5)
	set(&l.Levels, 4)
	return l
}

// Cut names the limit that left something out of an explanation.
type Cut string

// The cuts.
const (
	Whole     Cut = ""
	CutNodes  Cut = "nodes"  // Limits.Nodes
	CutSteps  Cut = "steps"  // the model's budget
	CutBytes  Cut = "bytes"  // of values: the explanation would be too long to send
	CutLevels Cut = "levels" // Limits.Levels
)

// bytesMax bounds the values in an explanation. Each node holds one row or match,
// and each of its reasons the text of it.
const bytesMax = 1 << 20

// textBytesMax is how much of a long value a text shows.
const textBytesMax = 64

// Row is a row of a relation. A value of Kind Invalid stands for any.
type Row struct {
	Relation string // "" for the query
	Values   []value.Value
}

// String spells the row as an atom: edge(1, _).
func (r Row) String() string {
	var b strings.Builder
	b.WriteString(r.Relation)
	b.WriteByte('(')
	for i, v := range r.Values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(valueText(v))
	}
	b.WriteByte(')')
	return b.String()
}

// valueText spells a value, a long one by its beginning only.
func valueText(v value.Value) string {
	switch text := v.Str(); {
	case v.Kind() == value.Invalid:
		return "_"
	case len(text) <= textBytesMax:
	case v.Kind() == value.Bytes:
		return value.OfBytes(text[:textBytesMax]).String() + "…"
	default:
		return value.OfString(strings.ToValidUTF8(text[:textBytesMax], "")).String() + "…"
	}
	return v.String()
}

// Binding is a named variable of a body with its value.
type Binding struct {
	Name  string
	Value value.Value
}

// named returns the bindings of the variables that have a name and a value.
func named(b *analysis.Body, values []value.Value) []Binding {
	var out []Binding
	for v, variable := range b.Variables {
		if variable.Name != "" && values[v].Kind() != value.Invalid {
			out = append(out, Binding{variable.Name, values[v]})
		}
	}
	return out
}

// Clause names a rule of the program, or the query.
type Clause struct {
	Rule int // index in Program.Rules, -1 for the query
	Text string
	Pos  analysis.Position // zero for the query
}

func clauseOf(p *analysis.Program, rule int) Clause {
	return Clause{rule, p.Rules[rule].Text, p.Rules[rule].Pos}
}

// Kind is the kind of a condition of a body.
type Kind uint8

// The kinds of conditions.
const (
	Atom Kind = iota
	Negation
	Comparison
	Computation
)

// Literal is a condition of a body: Index counts in the list of its kind.
type Literal struct {
	Kind  Kind
	Index int
}

// size is about what values need in an answer.
func size(values []value.Value) int {
	n := 0
	for _, v := range values {
		n += 16 + len(v.Str())
	}
	return n
}

// spell is the same for equal patterns only.
func spell(id analysis.RelationID, values []value.Value) string {
	b := []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	for _, v := range values {
		text := v.String()
		if v.Kind() == value.Invalid {
			text = ""
		}
		b = append(b, '0'+byte(v.Kind()))
		for n := len(text); ; n >>= 8 {
			b = append(b, byte(n))
			if n < 256 {
				break
			}
		}
		b = append(b, 0)
		b = append(b, text...)
	}
	return string(b)
}
