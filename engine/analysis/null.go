package analysis

import (
	"slices"

	"github.com/heddle-live/heddle/engine/parse"
)

// inferNulls finds the columns of derived relations that may hold null, again and
// again until nothing changes.
func (a *analyser) inferNulls(*parse.File) {
	if !a.hasNulls() {
		return
	}
	a.untilKnown(func(c *clause, id RelationID) bool {
		a.inferClauseNulls(c)
		columns, news := a.program.Relations[id].Columns, false
		for i, t := range c.head.Terms {
			if !columns[i].Nullable && c.nullable(t) {
				columns[i].Nullable, news = true, true
			}
		}
		return news
	})
}

// hasNulls reports whether a rule may meet a null at all.
func (a *analyser) hasNulls() bool {
	for i := range a.program.Relations {
		for _, column := range a.program.Relations[i].Columns {
			if column.Nullable {
				return true
			}
		}
	}
	for _, c := range a.rules {
		if slices.ContainsFunc(c.head.Terms, isNull) {
			return true
		}
		for _, s := range c.slots {
			if slices.ContainsFunc(s.constants, isNull) {
				return true
			}
		}
		for _, f := range c.calls {
			if f.function != nil && f.function.Nullable || slices.ContainsFunc(f.args, isNull) {
				return true
			}
		}
	}
	return false
}

// inferClauseNulls finds the classes that may be null: those that stand in nullable
// columns only, and what is computed from them. A comparison with `!= null` says no.
func (a *analyser) inferClauseNulls(c *clause) {
	never := map[*slot]bool{}
	for _, s := range c.slots {
		root := s.root()
		root.nullable = root.firstAtom != noAtom
		for _, t := range root.constants {
			root.nullable = true
			never[root] = never[root] || !isNull(t)
		}
		never[root] = never[root] || len(root.parameters) > 0
	}
	for _, l := range c.literals {
		if !l.positive() {
			continue
		}
		for i, t := range l.atom.Terms {
			if s := c.slotOf(t); s != nil && !a.program.Relations[l.relation].Columns[i].Nullable {
				never[s.root()] = true
			}
		}
	}
	for _, cmp := range c.kept {
		left, right := c.slotOf(cmp.Left), c.slotOf(cmp.Right)
		switch {
		case cmp.Op != parse.Ne:
		case left != nil && isNull(cmp.Right):
			never[left.root()] = true
		case right != nil && isNull(cmp.Left):
			never[right.root()] = true
		}
	}
	for root := range never {
		root.nullable = root.nullable && !never[root]
	}
	for _, f := range c.placed {
		f.nullable = f.function != nil && f.function.Nullable
		for _, t := range f.args {
			f.nullable = f.nullable || c.nullable(t)
		}
		if root := f.out.root(); !f.tests {
			root.nullable = f.nullable && !never[root]
		}
	}
}

// nullable reports whether a flat term may be null, once inferClauseNulls has run.
func (c *clause) nullable(t parse.Term) bool {
	if t.Kind == parse.Aggregated {
		switch aggregateKinds[t.Call.Name] {
		case Sum, Avg, Min, Max:
			return c.nullable(t.Call.Args[argument(t.Call)])
		}
		return false
	}
	s := c.slotOf(t)
	return isNull(t) || s != nil && s.root().nullable
}
