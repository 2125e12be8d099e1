package analysis

import (
	"cmp"
	"strings"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// write is a statement with heads under analysis.
type write struct {
	tree  *parse.Statement
	heads []parse.WriteHead // flat
	c     *clause
}

func newWrite(s *parse.Statement, declared []parse.TypedName, place clausePlace) *write {
	w := &write{tree: s, c: newClause(nil, s.Body)}
	w.c.where = place
	w.c.declare(declared)
	return w
}

// resolveWrite looks up what is written and what is read, and checks that the body
// binds the heads.
func (a *analyser) resolveWrite(w *write) {
	a.resolveBody(w.c)
	for _, h := range w.tree.Heads {
		r := a.baseRelation(h.Atom.Relation)
		if r != nil && len(r.Columns) != len(h.Atom.Terms) {
			a.fail(h.Atom.Relation.Pos, "it is "+signature(r), "%s has %s, and %s", r.Name,
				plural(len(r.Columns), "column"), hereAre(len(h.Atom.Terms), "value"))
		}
		terms := make([]parse.Term, len(h.Atom.Terms))
		for i, t := range h.Atom.Terms {
			terms[i] = a.resolveWritten(w, h, t)
		}
		h.Atom.Terms = terms
		w.heads = append(w.heads, h)
	}
	a.settle(w.c)
}

// resolveWritten returns a term of a head, flat.
func (a *analyser) resolveWritten(w *write, h parse.WriteHead, t parse.Term) parse.Term {
	s := w.c.slotOf(t)
	switch {
	case t.Kind == parse.Wildcard && h.Delete:
		a.fail(t.Pos, "let the body say which: -"+h.Atom.Relation.Text+"(X, Y) <- "+
			h.Atom.Relation.Text+"(X, Y)", "`_` stands for any value and cannot be deleted")
	case t.Kind == parse.Wildcard:
		a.fail(t.Pos, "name a variable of the body or a value",
			"`_` stands for any value and cannot be inserted")
	case t.Kind == parse.Parameter && s == nil:
		a.unknownParameter(w.c, t)
	case t.Kind == parse.Variable && s == nil && w.tree.Body == nil:
		a.fail(t.Pos, "write a value, or what binds it: ... <- "+h.Atom.Relation.Text+"(...)",
			"nothing binds %s", t.Name)
	case t.Kind == parse.Variable && s == nil:
		a.fail(t.Pos, w.c.unboundHint(t.Name), "the body does not bind %s", t.Name)
	}
	t = a.flatten(w.c, t, len(w.c.conditions))
	if s := w.c.slotOf(t); s != nil && s.use == "" {
		s.use = "written"
	}
	return t
}

// checkWrite compares, now that all types are known, every use with them.
func (a *analyser) checkWrite(w *write) {
	a.inferSlots(w.c)
	a.inferClauseNulls(w.c)
	a.checkClause(w.c)
	for _, h := range w.heads {
		r := &a.program.Relations[a.program.names[h.Atom.Relation.Text]]
		for i, t := range h.Atom.Terms {
			a.checkArgument(w.c, r, i, t)
			column := r.Columns[i]
			if s := w.c.slotOf(t); s != nil && s.root().nullable && !column.Nullable && !h.Delete {
				a.fail(t.Pos, "add the condition "+s.name+" != null, or declare "+column.Name+": "+
					column.Type.String()+"?", "column %s of %s is never null, and %s may be",
					column.Name, r.Name, s.name)
			}
		}
	}
}

// emitWrite makes the IR of a statement.
func (a *analyser) emitWrite(w *write) Statement {
	s := Statement{Pos: w.tree.Pos, Text: w.tree.String()}
	e := newEmitter(w.c, a.program)
	q := Query{Parameters: parameterColumns(w.c.declared), Body: e.body()}
	columns := map[Term]int{}
	for _, h := range w.heads {
		r := &a.program.Relations[a.program.names[h.Atom.Relation.Text]]
		head := WriteHead{Relation: r.Name, Delete: h.Delete}
		for i, t := range h.Atom.Terms {
			term := e.typed(t, r.Columns[i].Type)
			if !term.IsConst() {
				column, ok := columns[term]
				if !ok {
					column = len(q.Output)
					columns[term] = column
					slot := w.c.slotOf(t)
					q.output(term, cmp.Or(slot.plainName(), "computed"), slot.root())
				}
				term = Term{Var: column}
			}
			head.Terms = append(head.Terms, term)
		}
		s.Heads = append(s.Heads, head)
	}
	if len(q.Output) == 0 {
		if w.tree.Body == nil {
			return s.plain()
		}
		// A result has at least one column.
		q.Output = []Term{ConstTerm(value.OfBool(true))}
		q.Columns = []Column{{Name: "holds", Type: value.Bool}}
	}
	columnNames(q.Columns)
	q.Body.Variables = e.variables
	q.Text = w.canonicalText()
	s.Query = &q
	return s
}

// plain turns a statement of rows that are known into operations, deletions first.
func (s Statement) plain() Statement {
	plain := Statement{Pos: s.Pos, Text: s.Text}
	for _, deletes := range [2]bool{true, false} {
		for _, h := range s.Heads {
			if h.Delete != deletes {
				continue
			}
			op := Op{Relation: h.Relation, Delete: h.Delete}
			for _, t := range h.Terms {
				op.Row = append(op.Row, t.Const)
			}
			plain.Ops = append(plain.Ops, op)
		}
	}
	return plain
}

// canonicalText returns the statement with other names for variables and parameters.
func (w *write) canonicalText() string {
	all := w.c.renamer()
	parts := make([]string, 0, len(w.tree.Heads))
	for _, h := range w.tree.Heads {
		h.Atom.Terms = all(h.Atom.Terms)
		parts = append(parts, h.String())
	}
	var text strings.Builder
	text.WriteString(strings.Join(parts, ", ") + " <- ")
	for i, l := range w.c.conditions {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(renamed(l, all).String())
	}
	return text.String()
}
