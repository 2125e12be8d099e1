package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// source is a program as pieces of text, so that a shrinker can leave pieces out.
type source struct {
	schemas []*relation
	clauses []clause
	views   []view
	actions []action
}

// relation is what the generator knows of a relation.
type relation struct {
	name    string
	was     string // the name of a base relation before, "" for none
	columns []column
	derived bool
	level   int // derived ones read others of their level, and negate those below
}

type column struct {
	kind     value.Kind
	nullable bool
}

type clause struct {
	head string
	body []string
}

type view struct {
	name   string
	params []param
	parts  []part
}

type param struct {
	name string
	kind value.Kind
}

type part struct {
	name string
	goal string
	body []string
	tail string // order and limit
}

type action struct {
	name       string
	params     []param
	statements []statement
}

// statement is one statement of a transaction or action.
type statement struct {
	heads []string // with their signs
	body  []string // nil for plain rows
}

func (c column) String() string {
	if c.nullable {
		return c.kind.String() + "?"
	}
	return c.kind.String()
}

func (r *relation) String() string {
	columns := make([]string, len(r.columns))
	for i, c := range r.columns {
		columns[i] = fmt.Sprintf("c%d: %v", i, c)
	}
	text := "+" + r.name + "(" + strings.Join(columns, ", ") + ")"
	if r.was != "" {
		text += " was " + r.was
	}
	return text
}

func (c clause) String() string { return c.head + " <- " + strings.Join(c.body, ", ") }

func spellParams(name string, params []param) string {
	texts := make([]string, len(params))
	for i, p := range params {
		texts[i] = "$" + p.name + ": " + p.kind.String()
	}
	return name + "(" + strings.Join(texts, ", ") + ") := "
}

func (p part) String() string {
	text := "?" + strings.Join(append([]string{p.goal}, p.body...), ", ")
	if p.name != "" {
		text = p.name + ": " + text
	}
	if p.tail != "" {
		text += " " + p.tail
	}
	return text
}

func (v view) String() string {
	parts := make([]string, len(v.parts))
	for i, p := range v.parts {
		parts[i] = p.String()
	}
	return "view " + spellParams(v.name, v.params) + strings.Join(parts, ", ")
}

func (s statement) String() string {
	text := strings.Join(s.heads, ", ")
	if s.body != nil {
		text += " <- " + strings.Join(s.body, ", ")
	}
	return text
}

func (a action) String() string {
	statements := make([]string, len(a.statements))
	for i, s := range a.statements {
		statements[i] = s.String()
	}
	return "action " + spellParams(a.name, a.params) + strings.Join(statements, "; ")
}

// String returns the text of the program.
func (s *source) String() string {
	var b strings.Builder
	for _, r := range s.schemas {
		fmt.Fprintln(&b, r)
	}
	for _, c := range s.clauses {
		fmt.Fprintln(&b, c)
	}
	for _, v := range s.views {
		fmt.Fprintln(&b, v)
	}
	for _, a := range s.actions {
		fmt.Fprintln(&b, a)
	}
	return b.String()
}

func (s *source) clone() *source {
	return &source{
		schemas: slices.Clone(s.schemas), clauses: slices.Clone(s.clauses),
		views: slices.Clone(s.views), actions: slices.Clone(s.actions),
	}
}

// program reads the source as a graph would.
func (s *source) program() (*analysis.Program, error) {
	return readProgram(s.String())
}
