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
	for root := range never {
		root.nullable = root.nullable && !never[root]
	}
	for _, f := range c.placed {
		if root := f.out.root(); !f.tests {
			root.nullable = c.mayGiveNull(f) && !never[root]
		}
	}
	for c.excludeNulls() {
	}
}

// mayGiveNull reports whether the result of a call may be null.
func (c *clause) mayGiveNull(f *call) bool {
	return f.function != nil && f.function.Nullable || slices.ContainsFunc(f.args, c.nullable)
}

// excludeNulls notes what comparisons and computations say: what is greater than
// something, or equals what is computed without nulls, is not null, and neither are the
// arguments of what is not. It reports whether that was news.
func (c *clause) excludeNulls() bool {
	news := false
	exclude := func(t parse.Term) {
		if s := c.slotOf(t); s != nil && s.root().nullable {
			s.root().nullable, news = false, true
		}
	}
	for _, cmp := range c.kept {
		less, greater := cmp.Left, cmp.Right
		if cmp.Op == parse.Gt || cmp.Op == parse.Ge {
			less, greater = greater, less
		}
		switch cmp.Op {
		case parse.Ne:
			if isNull(less) {
				exclude(greater)
			}
			if isNull(greater) {
				exclude(less)
			}
		case parse.Lt, parse.Gt:
			exclude(greater)
		case parse.Le, parse.Ge:
			if !c.nullable(less) {
				exclude(greater)
			}
		}
	}
	for _, f := range c.placed {
		root := f.out.root()
		if root.nullable && !c.mayGiveNull(f) {
			root.nullable, news = false, true
		}
		f.nullable = c.mayGiveNull(f)
		if !root.nullable {
			for _, t := range f.args {
				exclude(t)
			}
		}
	}
	return news
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
