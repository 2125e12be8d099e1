package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// CheckTransaction checks a parsed transaction against a program. Facts that follow
// each other are one statement, whose rows may share memory. The error is of type
// parse.Errors; there are no statements then.
func CheckTransaction(p *Program, t *parse.TransactionTree) ([]Statement, error) {
	a := newAnalyser(p.indexed(), t.Source)
	var statements []Statement
	for i := 0; i < len(t.Statements) && !a.errs.Full(); i++ {
		if t.Statements[i].Heads != nil {
			statements = append(statements, a.checkStatement(&t.Statements[i]))
			continue
		}
		s, rows, end := Statement{Pos: t.Statements[i].Pos}, 0, i
		for ; end < len(t.Statements) && t.Statements[end].Heads == nil; end++ {
			rows += len(t.Statements[end].Facts.Rows)
		}
		s.Ops = make([]Op, 0, rows)
		for ; i < end; i++ {
			f := &t.Statements[i].Facts
			a.facts(f, func(row []value.Value) {
				s.Ops = append(s.Ops, Op{Relation: f.Relation.Text, Delete: f.Delete, Row: row})
			})
		}
		i--
		statements = append(statements, s)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	return statements, nil
}

// checkStatement checks a statement with heads, which has no meaning after an error.
func (a *analyser) checkStatement(tree *parse.Statement) Statement {
	before := len(a.errs)
	w := newWrite(tree, nil, inTransaction)
	a.resolveWrite(w)
	if len(a.errs) > before {
		return Statement{}
	}
	a.checkWrite(w)
	if len(a.errs) > before {
		return Statement{}
	}
	return a.emitWrite(w)
}

// facts checks a statement and calls emit for each row.
func (a *analyser) facts(f *parse.Facts, emit func(row []value.Value)) {
	r := a.baseRelation(f.Relation)
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
			cells = append(cells, coerce(t.Value, r.Columns[i].Type))
			if !r.Columns[i].holds(cells[len(cells)-1]) {
				a.misfit(r, i, t)
			}
		}
		emit(cells[len(cells)-width : len(cells) : len(cells)])
	}
}

// misfit fails for a value that its column does not hold.
func (a *analyser) misfit(r *Relation, i int, t parse.Term) {
	column := r.Columns[i]
	if isNull(t) {
		a.fail(t.Pos, "to allow it, declare "+column.Name+": "+column.Type.String()+"?",
			"column %s of %s is never null", column.Name, r.Name)
		return
	}
	a.fail(t.Pos, literalHint(t.Value, column.Type), "column %s of %s is %s, and %s is %s",
		column.Name, r.Name, kindText(column.Type), shortValue(t.Value), kindText(t.Value.Kind()))
}

// holds reports whether the column holds v.
func (c *Column) holds(v value.Value) bool {
	return v.Kind() == c.Type || c.Nullable && v.IsNull()
}

// baseRelation returns the relation of facts, nil after an error.
func (a *analyser) baseRelation(relation parse.Name) *Relation {
	name := relation.Text
	if id, ok := a.program.names[name]; ok {
		r := &a.program.Relations[id]
		if a.program.keepsClock(name) {
			a.fail(relation.Pos, "", "%s", clockMessage)
			return nil
		}
		if !r.Derived {
			return r
		}
		a.fail(relation.Pos, a.sourcesHint(id),
			"%s is derived by rules and holds no facts of its own", name)
		return nil
	}
	if other, isLeaf := a.leaves[name]; isLeaf {
		a.fail(relation.Pos, "facts are written to relations",
			"%s is %s, not a relation", name, other.what)
		return nil
	}
	message, hint := a.program.unknownRelation(name, true)
	a.fail(relation.Pos, hint, "%s", message)
	return nil
}

// keepsClock reports whether relation name is the clock's, which nobody writes.
func (p *Program) keepsClock(name string) bool { return p.ClockMillis > 0 && name == clockName }

const clockMessage = "the graph itself keeps the row of clock"

// sourcesHint is that of the program, whose rules may not be made yet.
func (a *analyser) sourcesHint(derived RelationID) string {
	known := *a.program
	for _, c := range a.rules {
		r := Rule{Head: Atom{Relation: a.program.names[c.head.Relation.Text]}}
		for _, l := range c.literals {
			if l.atom != nil && l.relation >= 0 {
				r.Body.Atoms = append(r.Body.Atoms, Atom{Relation: l.relation})
			}
		}
		known.Rules = append(known.Rules, r)
	}
	return known.sourcesHint(derived)
}

// sourcesHint names the relations with facts that the rules of a derived one
// read directly.
func (p *Program) sourcesHint(derived RelationID) string {
	var names []string
	for _, rule := range p.Rules {
		if rule.Head.Relation != derived {
			continue
		}
		for _, atom := range slices.Concat(rule.Body.Atoms, rule.Body.Negations) {
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
	if p.keepsClock(relation) {
		return &RowError{Relation: relation, Message: clockMessage}
	}
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
		if !r.Columns[i].holds(v) {
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
