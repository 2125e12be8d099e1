package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// CheckTransaction checks parsed facts against a program and returns them as
// operations in order of the text; the rows of one statement share memory. The
// error is of type parse.Errors; there are no operations then.
func CheckTransaction(p *Program, t *parse.TransactionTree) ([]Op, error) {
	a := newAnalyser(p.indexed(), t.Source)
	count := 0
	for i := range t.Facts {
		count += len(t.Facts[i].Rows)
	}
	ops := make([]Op, 0, count)
	for i := range t.Facts {
		f := &t.Facts[i]
		a.facts(f, func(row []value.Value) {
			ops = append(ops, Op{Relation: f.Relation.Text, Delete: f.Delete, Row: row})
		})
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	return ops, nil
}

// facts checks a statement and calls emit for each row.
func (a *analyser) facts(f *parse.Facts, emit func(row []value.Value)) {
	r := a.baseRelation(f)
	if r == nil {
		return
	}
	width := len(r.Columns)
	cells := make([]value.Value, 0, width*len(f.Rows))
	for _, terms := range f.Rows {
		if a.errs.Full() {
			return
		}
		if len(terms) != width {
			a.fail(terms[0].Pos, "it is "+signature(r), "%s has %s, and %s",
				r.Name, plural(width, "column"), hereAre(len(terms), "value"))
			continue
		}
		for i, t := range terms {
			if kind := t.Value.Kind(); kind != r.Columns[i].Type {
				a.fail(t.Pos, literalHint(t.Value, r.Columns[i].Type),
					"column %s of %s is %s, and %s is %s", r.Columns[i].Name, r.Name,
					kindText(r.Columns[i].Type), shortValue(t.Value), kindText(kind))
			}
			cells = append(cells, t.Value)
		}
		emit(cells[len(cells)-width : len(cells) : len(cells)])
	}
}

// baseRelation returns the relation of facts, nil after an error.
func (a *analyser) baseRelation(f *parse.Facts) *Relation {
	name := f.Relation.Text
	if id, ok := a.program.names[name]; ok {
		r := &a.program.Relations[id]
		if !r.Derived {
			return r
		}
		a.fail(f.Relation.Pos, a.program.sourcesHint(id),
			"%s is derived by rules and holds no facts of its own", name)
		return nil
	}
	if _, isView := a.viewPos[name]; isView {
		a.fail(f.Relation.Pos, "facts are written to relations",
			"%s is a view, not a relation", name)
		return nil
	}
	message, hint := a.program.unknownRelation(name, true)
	a.fail(f.Relation.Pos, hint, "%s", message)
	return nil
}

// sourcesHint names the relations with facts that the rules of a derived one
// read directly.
func (p *Program) sourcesHint(derived RelationID) string {
	var names []string
	for _, rule := range p.Rules {
		if rule.Head.Relation != derived {
			continue
		}
		for _, atom := range rule.Body.Atoms {
			r := &p.Relations[atom.Relation]
			if !r.Derived && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	if len(names) == 0 {
		return "write the facts that its rules read"
	}
	return "write the facts that its rules read: " + strings.Join(names, ", ")
}

// RowError says why a row does not fit its relation. Column is "" if the fault
// is not one column's.
type RowError struct {
	Relation string
	Column   string
	Message  string // names relation and column
}

// Error returns the message.
func (e *RowError) Error() string { return e.Message }

// CheckRow reports whether a row fits a base relation of the program: it has
// the arity and the types of the schema. The error is a *RowError. It allocates
// nothing for a row that fits.
func CheckRow(p *Program, relation string, row []value.Value) error {
	id, ok := p.RelationNamed(relation)
	if !ok {
		message, hint := p.unknownRelation(relation, true)
		if hint != "" {
			message += "; " + hint
		}
		return &RowError{Relation: relation, Message: message}
	}
	r := &p.Relations[id]
	if r.Derived {
		message := "relation " + relation + " is derived by rules and holds no facts of its own; " +
			p.sourcesHint(id)
		return &RowError{Relation: relation, Message: message}
	}
	if len(row) != len(r.Columns) {
		message := fmt.Sprintf("relation %s: expected %s, as in %s, got %s", relation,
			plural(len(r.Columns), "value"), signature(r), plural(len(row), "value"))
		return &RowError{Relation: relation, Message: message}
	}
	for i, v := range row {
		if v.Kind() != r.Columns[i].Type {
			message := fmt.Sprintf(
				"relation %s, column %s: expected %s, got %s, which is %s", relation,
				r.Columns[i].Name, kindText(r.Columns[i].Type), shortValue(v), kindText(v.Kind()))
			return &RowError{Relation: relation, Column: r.Columns[i].Name, Message: message}
		}
	}
	return nil
}

// shortValue returns a value as a program spells it, cut if it is long.
func shortValue(v value.Value) string {
	const length = 40
	text := []rune(v.String())
	if len(text) > length {
		return string(text[:length]) + "…"
	}
	return string(text)
}
