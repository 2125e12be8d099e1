package analysis

import (
	"math"
	"slices"
	"strconv"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

func plainInt(n int) string { return strconv.Itoa(n) }

// inferTypes gives the columns of derived relations the types of their heads.
func (a *analyser) inferTypes(*parse.File) {
	a.origins = make([][]Position, len(a.program.Relations))
	a.untilKnown(a.inferHead)
	if a.intLiterals = a.intWaits; a.intWaits {
		a.untilKnown(a.inferHead)
	}
	for _, c := range a.rules {
		for _, f := range c.calls {
			if _, err := c.function(f); err != nil {
				return // the cause is reported later
			}
		}
	}
	a.reportUntyped()
}

// untilKnown calls infer for rules, again and again until nothing changes: what a
// clause learns, those that read its relation learn next.
func (a *analyser) untilKnown(infer func(c *clause, head RelationID) (news bool)) {
	relations := a.program.Relations
	readers := make([][]int, len(relations))
	queue := make([]int, len(a.rules))
	queued := make([]bool, len(a.rules))
	for i, c := range a.rules {
		queue[i], queued[i] = i, true
		for _, l := range c.literals {
			if l.atom != nil && relations[l.relation].Derived {
				readers[l.relation] = append(readers[l.relation], i)
			}
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue, queued[i] = queue[1:], false
		id := a.program.names[a.rules[i].head.Relation.Text]
		if !infer(a.rules[i], id) {
			continue
		}
		for _, reader := range readers[id] {
			if !queued[reader] {
				queue, queued[reader] = append(queue, reader), true
			}
		}
	}
}

// inferHead gives the head's columns what the clause knows, and reports whether
// that was news.
func (a *analyser) inferHead(c *clause, id RelationID) bool {
	a.inferSlots(c)
	columns, news := a.program.Relations[id].Columns, false
	if a.origins[id] == nil {
		a.origins[id] = make([]Position, len(columns))
	}
	for i, t := range c.head.Terms {
		if columns[i].Type != value.Invalid {
			continue
		}
		if t.Kind == parse.Constant && t.Value.Kind() == value.Int && !a.intLiterals {
			a.intWaits = true
			continue
		}
		if kind := c.kindOf(t); kind != value.Invalid {
			columns[i].Type, a.origins[id][i] = kind, t.Pos
			news = true
		}
	}
	return news
}

// inferSlots gives slots the types of the first columns they stand in, classes the
// first type that one of them has, and calls what they mean.
func (a *analyser) inferSlots(c *clause) {
	for _, l := range c.literals {
		if l.atom == nil {
			continue
		}
		r := &a.program.Relations[l.relation]
		for i, t := range l.atom.Terms {
			s := c.slotOf(t)
			if s != nil && s.kind == value.Invalid && r.Columns[i].Type != value.Invalid {
				s.kind = r.Columns[i].Type
				s.why = "column " + r.Columns[i].Name + " of " + r.Name
			}
		}
	}
	for news := true; news; news = c.inferCalls() {
		for _, s := range c.slots {
			if root := s.root(); root.inferred == value.Invalid {
				root.inferred = s.kind
			}
		}
	}
	for _, s := range c.slots {
		for _, t := range s.constants {
			if s.parent == nil && s.inferred == value.Invalid && !isNull(t) {
				s.inferred = t.Value.Kind()
			}
		}
	}
	c.inferCalls()
}

// kindOf returns the type of a term as far as it is known.
func (c *clause) kindOf(t parse.Term) value.Kind {
	if t.Kind == parse.Aggregated {
		return c.aggregateKind(t)
	}
	if isNull(t) {
		return value.Invalid
	}
	if t.Kind == parse.Constant {
		return t.Value.Kind()
	}
	s := c.slotOf(t)
	switch {
	case s == nil:
		return value.Invalid
	case s.kind != value.Invalid:
		return s.kind
	}
	return s.root().inferred
}

// reportUntyped fails for derived relations whose types nothing gives. Of those
// that only read such relations nothing is said: they are not the cause.
func (a *analyser) reportUntyped() {
	relations := a.program.Relations
	untyped := func(id RelationID) (column int) {
		for i, c := range relations[id].Columns {
			if c.Type == value.Invalid {
				return i
			}
		}
		return -1
	}
	dependents := make([]int, len(relations)) // untyped ones that read it
	reads := make([][]RelationID, len(relations))
	for _, c := range a.rules {
		head := a.program.names[c.head.Relation.Text]
		if untyped(head) < 0 {
			continue
		}
		for _, l := range c.literals {
			if l.atom != nil && untyped(l.relation) >= 0 {
				reads[head] = append(reads[head], l.relation)
				dependents[l.relation]++
			}
		}
	}
	var free []RelationID
	for id := range relations {
		if untyped(RelationID(id)) >= 0 && dependents[id] == 0 {
			free = append(free, RelationID(id))
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, read := range reads[id] {
			if dependents[read]--; dependents[read] == 0 {
				free = append(free, read)
			}
		}
	}
	for id := range relations {
		column := untyped(RelationID(id))
		r := &relations[id]
		switch {
		case column < 0:
		case len(reads[id]) == 0:
			a.fail(r.Pos, "add a rule for "+r.Name+" that gives it another value",
				"column %d of %s gets no type, since it is null in all rules", column+1, r.Name)
		case dependents[id] > 0:
			a.fail(r.Pos, "add a rule for "+r.Name+" that reads a relation with facts",
				"column %d of %s gets no type, since its rules depend on nothing but each other",
				column+1, r.Name)
		}
	}
}

// checkTypes compares, now that all types are known, every use with them.
func (a *analyser) checkTypes(*parse.File) {
	for _, c := range a.rules {
		a.inferSlots(c)
		a.checkClause(c)
		a.checkAggregateTypes(c)
		a.checkHead(c)
	}
	for _, v := range a.views {
		a.inferSlots(v.c)
		a.inferClauseNulls(v.c)
		a.checkClause(v.c)
		a.checkTyped(v.c)
	}
	for _, step := range a.writes {
		a.checkWrite(step.w)
	}
}

// checkTyped fails for variables whose types nothing gives.
func (a *analyser) checkTyped(c *clause) {
	faultless := len(a.errs) == 0 // else the cause may be reported already
	for _, s := range c.slots {
		if faultless && s.root().inferred == value.Invalid && s.call == nil {
			a.fail(s.pos, "let it stand in a relation, or compare it with something that does",
				"the type of %s cannot be told", s.name)
		}
	}
}

func (a *analyser) checkClause(c *clause) {
	a.checkCalls(c)
	for _, l := range c.literals {
		if l.atom == nil {
			a.checkComparison(c, l.comparison)
			continue
		}
		for i, t := range l.atom.Terms {
			a.checkArgument(c, &a.program.Relations[l.relation], i, t)
		}
	}
}

// checkArgument compares a term of an atom with its column.
func (a *analyser) checkArgument(c *clause, r *Relation, i int, t parse.Term) {
	column, kind := r.Columns[i], c.kindOf(t)
	s := c.slotOf(t)
	if s != nil && !column.Nullable && !a.stored {
		if at := slices.IndexFunc(s.root().constants, isNull); at >= 0 {
			t = s.root().constants[at] // Y = null
		}
	}
	switch {
	case isNull(t) && !column.Nullable:
		a.fail(t.Pos, "", "column %s of %s is never null", column.Name, r.Name)
	case kind == value.Invalid || column.Type == value.Invalid || kind == column.Type:
	case t.Kind == parse.Constant && coerce(t.Value, column.Type).Kind() == column.Type:
	case t.Kind == parse.Constant:
		a.fail(t.Pos, literalHint(t.Value, column.Type), "column %s of %s is %s, and %s is %s",
			column.Name, r.Name, kindText(column.Type), t.Value, kindText(kind))
	case t.Kind == parse.Parameter && s.why == "as declared":
		a.fail(t.Pos, "declare "+s.name+": "+column.Type.String(),
			"column %s of %s is %s, and the parameter %s is declared as %s",
			column.Name, r.Name, kindText(column.Type), s.name, kindText(kind))
	default:
		a.fail(t.Pos, "", "column %s of %s is %s, and %s is %s%s",
			column.Name, r.Name, kindText(column.Type), s.name, kindText(kind), s.because())
	}
}

// because returns where the slot's own type comes from, in parentheses.
func (s *slot) because() string {
	if s == nil || s.why == "" {
		return ""
	}
	return " (" + s.why + ")"
}

func (a *analyser) checkComparison(c *clause, cmp parse.Comparison) {
	left, right := c.kindOf(cmp.Left), c.kindOf(cmp.Right)
	if left == right || left == value.Invalid || right == value.Invalid ||
		c.coerced(cmp.Left, right).Kind() == right || c.coerced(cmp.Right, left).Kind() == left {
		return
	}
	hint := "both sides of a comparison have one type"
	if cmp.Right.Kind == parse.Constant {
		hint = literalHint(cmp.Right.Value, left)
	} else if cmp.Left.Kind == parse.Constant {
		hint = literalHint(cmp.Left.Value, right)
	} else if cmp.Right.Kind == parse.Parameter && c.declared != nil {
		hint = "declare " + cmp.Right.String() + ": " + left.String()
	} else if cmp.Left.Kind == parse.Parameter && c.declared != nil {
		hint = "declare " + cmp.Left.String() + ": " + right.String()
	}
	a.fail(cmp.Pos, hint, "%s is %s%s, and %s is %s%s",
		c.show(cmp.Left), kindText(left), c.slotOf(cmp.Left).because(),
		c.show(cmp.Right), kindText(right), c.slotOf(cmp.Right).because())
}

// coerced returns a constant in the type that is wanted, and nothing for other terms.
func (c *clause) coerced(t parse.Term, want value.Kind) value.Value {
	if t.Kind != parse.Constant {
		return value.Value{}
	}
	return coerce(t.Value, want)
}

// show returns the text of a flat term.
func (c *clause) show(t parse.Term) string {
	if s := c.slotOf(t); s != nil {
		return s.name
	}
	return t.String()
}

// checkHead compares the head with the types that the relation's rules gave it.
func (a *analyser) checkHead(c *clause) {
	id := a.program.names[c.head.Relation.Text]
	r := &a.program.Relations[id]
	for i, t := range c.head.Terms {
		kind := c.kindOf(t)
		if kind == value.Invalid || kind == r.Columns[i].Type ||
			c.coerced(t, r.Columns[i].Type).Kind() == r.Columns[i].Type {
			continue
		}
		hint := "a column has one type in all rules of its relation"
		if t.Kind == parse.Constant {
			hint = literalHint(t.Value, r.Columns[i].Type)
		}
		a.fail(t.Pos, hint, "column %d of %s is %s here%s and %s in line %d, column %d",
			i+1, r.Name, kindText(kind), c.slotOf(t).because(), kindText(r.Columns[i].Type),
			a.origins[id][i].Line, a.origins[id][i].Column)
	}
}

// literalHint returns how to write v in the type that is wanted.
func literalHint(v value.Value, want value.Kind) string {
	switch kind := v.Kind(); {
	case want == value.String:
		return "a string needs quotes: " + value.OfString(v.String()).String()
	case want == value.Float && kind == value.Int:
		return "write " + v.String() + ".0"
	case want == value.Int && kind == value.Float && v.Float() == math.Trunc(v.Float()) &&
		math.Abs(v.Float()) < 1<<53:
		return "write " + strconv.FormatInt(int64(v.Float()), 10)
	case want == value.Int && kind == value.Float:
		return "an int has no point"
	case kind == value.String && readsAs(v.Str(), want):
		return "write " + v.Str() + " without quotes"
	case want == value.Bool:
		return "write true or false"
	case want == value.Timestamp:
		return `write t"2026-11-30T12:00:00Z", or the milliseconds since 1970`
	case want == value.Bytes:
		return `write pairs of hex digits: x"00ff"`
	}
	return ""
}

// readsAs reports whether text is a literal of the kind.
func readsAs(text string, kind value.Kind) bool {
	q, err := parse.Query("?r(" + text + ")")
	if err != nil || len(q.Goal.Terms) != 1 || len(q.Body) > 0 {
		return false
	}
	t := q.Goal.Terms[0]
	return t.Kind == parse.Constant && t.Value.Kind() == kind
}
