package analysis

import (
	"maps"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// sides says from where the values of a class are bounded.
type sides uint8

const (
	above sides = 1 << iota
	below
	both = above | below
)

func (s sides) String() string {
	return [...]string{"", " from above", " from below", ""}[s]
}

func (s sides) flipped() sides { return s&above<<1 | s&below>>1 }

// checkTermination fails for clauses that derive ever new values from their own
// relation: a computed value of the head depends on a recursive atom, and nothing
// bounds it or what it is computed from.
func (a *analyser) checkTermination(*parse.File) {
	if a.stored {
		return // limits bound what it derives
	}
	for _, c := range a.rules {
		head := a.component[a.program.names[c.head.Relation.Text]]
		grows := map[*slot]bool{}  // has a value from the recursion
		bound := map[*slot]sides{} // has one from elsewhere
		for _, l := range c.literals {
			if !l.positive() {
				continue
			}
			for _, t := range l.atom.Terms {
				if s := c.slotOf(t); s != nil && a.component[l.relation] == head {
					grows[s.root()] = true
				} else if s != nil {
					bound[s.root()] = both
				}
			}
		}
		if len(grows) > 0 {
			a.checkGrowth(c, grows, bound)
		}
	}
}

// checkGrowth fails for head columns that grow without bound.
func (a *analyser) checkGrowth(c *clause, grows map[*slot]bool, bound map[*slot]sides) {
	tainted := maps.Clone(grows) // and what is computed from it
	for _, f := range c.placed {
		for _, t := range f.args {
			if s := c.slotOf(t); s != nil && tainted[s.root()] {
				tainted[f.out.root()] = true
			}
		}
	}
	for _, cmp := range c.kept {
		left, right := c.slotOf(cmp.Left), c.slotOf(cmp.Right)
		side := both
		switch cmp.Op {
		case parse.Ne:
			continue
		case parse.Lt, parse.Le:
			side = above
		case parse.Gt, parse.Ge:
			side = below
		}
		// What grows itself bounds nothing.
		if left != nil && (right == nil || !tainted[right.root()] || bound[right.root()] != 0) {
			c.boundedBy(left, side, bound)
		}
		if right != nil && (left == nil || !tainted[left.root()] || bound[left.root()] != 0) {
			c.boundedBy(right, side.flipped(), bound)
		}
	}
	growing := map[*slot]bool{} // computed from the recursion without bound
	for _, f := range c.placed {
		root := f.out.root()
		needed := f.towards()
		// What stands in a recursive atom as well is no new value.
		if f.tests || bound[root]&needed != 0 || grows[root] || f.function.Result == value.Bool {
			continue
		}
		for _, t := range f.args {
			if s := c.slotOf(t); s != nil && bound[s.root()]&needed == 0 &&
				(grows[s.root()] || growing[s.root()]) {
				growing[root] = true
			}
		}
	}
	for _, t := range c.head.Terms {
		if s := c.slotOf(t); s != nil && growing[s.root()] {
			root := s.root()
			a.fail(root.computed.pos, "bound it, for instance with "+exampleBound(root)+
				", or with a relation that holds the values it may have",
				"%s grows without end: %s is computed from what the rule itself derives, "+
					"and nothing bounds it%s", c.head.Relation.Text, root.name,
				root.computed.towards())
		}
	}
}

// towards returns the side on which a computation that is done again and again must be
// bounded, both if either will do.
func (f *call) towards() sides {
	switch f.name {
	case "concat":
		return above
	case "+", "-":
		step := f.args[1]
		if f.name == "+" && step.Kind != parse.Constant {
			step = f.args[0]
		}
		if step.Kind != parse.Constant {
			return both
		}
		sign := 0
		switch zero := value.OfInt(0); step.Value.Kind() {
		case value.Int:
			sign = value.Compare(step.Value, zero)
		case value.Float:
			switch x := step.Value.Float(); {
			case x > 0:
				sign = 1
			case x < 0:
				sign = -1
			}
		}
		if f.name == "-" {
			sign = -sign
		}
		switch {
		case sign > 0:
			return above
		case sign < 0:
			return below
		}
	}
	return both
}

// exampleBound spells a bound of a class that grows.
func exampleBound(s *slot) string {
	upwards := s.computed.towards() != below
	sign, far := " > ", "-"
	if upwards {
		sign, far = " < ", ""
	}
	switch s.computed.function.Result {
	case value.String, value.Bytes:
		return "len(" + s.name + ") < 1000"
	case value.Float:
		return s.name + sign + far + "1000.0"
	case value.Timestamp:
		return s.name + sign + "t\"2030-01-01T00:00:00Z\""
	default:
		return s.name + sign + far + "1000"
	}
}

// boundedBy notes that a class has a bound, and with it what it is computed from:
// len(S) < 100 bounds S.
func (c *clause) boundedBy(s *slot, side sides, bound map[*slot]sides) {
	root := s.root()
	if bound[root]|side == bound[root] {
		return
	}
	bound[root] |= side
	if root.computed == nil {
		return
	}
	for i, t := range root.computed.args {
		of := both
		switch root.computed.name {
		case "+", "len":
			of = side
		case "-":
			if of = side; i == 1 {
				of = side.flipped()
			}
		}
		if arg := c.slotOf(t); arg != nil {
			c.boundedBy(arg, of, bound)
		}
	}
}
