package analysis

import (
	"math"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// clause is a rule or a query under analysis.
type clause struct {
	head       *parse.Atom     // nil for a query
	conditions []parse.Literal // as written
	where      clausePlace
	goal       bool // the first condition is the goal of a query
	query      *parse.QueryTree
	declared   []parse.TypedName // parameters of a view
	literals   []literal         // the conditions, their expressions replaced by variables
	slots      []*slot           // parameters as declared, then in order of appearance
	names      map[string]*slot
	calls      []*call // in order of the text, inner ones first
	placed     []*call // in an order in which each has its arguments
	// kept are the comparisons that do not merely bind.
	kept []parse.Comparison
}

// clausePlace tells where a clause stands, which decides on its parameters.
type clausePlace uint8

const (
	inRule clausePlace = iota
	inView
	inQuery // parameters are declared by use
	inAction
	inTransaction
)

// literal is a condition whose terms are variables, parameters, values and
// wildcards.
type literal struct {
	atom       *parse.Atom // nil for a comparison
	negated    bool
	relation   RelationID // of the atom, -1 after an error
	comparison parse.Comparison
}

// slot is a variable or a parameter of a clause, or the result of a call. Those that
// `=` makes equal form a class, whose root is the one that appears first; fields
// below the line are those of a root.
type slot struct {
	name      string // with the $ of a parameter; of a call its text
	parameter bool
	call      *call // nil but for the result of a call
	pos       Position
	use       string // what is done with it where it appears first
	order     int
	parent    *slot

	kind value.Kind // its own: declared, or of the first column it stands in
	why  string     // where kind comes from

	firstAtom  int          // the first atom that has it, or noAtom
	constants  []parse.Term // distinct values
	parameters []*slot
	calls      []*call    // whose result it is
	inferred   value.Kind // the kind of the class
	late       bool       // to be computed rather than found in an atom
	bound      bool       // has a value in every match of the body
	computed   *call      // binds it
	nullable   bool       // may be null
}

// noAtom is later than every atom.
const noAtom = math.MaxInt

func (s *slot) root() *slot {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

func newClause(head *parse.Atom, body []parse.Literal) *clause {
	return &clause{head: head, conditions: body, names: map[string]*slot{}}
}

// newQueryClause returns the clause of a query. Without declared parameters it
// is an ad-hoc query.
func newQueryClause(q *parse.QueryTree, declared []parse.TypedName) *clause {
	c := newClause(nil, append([]parse.Literal{{Atom: &q.Goal}}, q.Body...))
	c.goal, c.query, c.where = true, q, inView
	if len(declared) == 0 {
		c.where = inQuery
	}
	c.declare(declared)
	return c
}

// declare makes the slots of declared parameters.
func (c *clause) declare(parameters []parse.TypedName) {
	c.declared = parameters
	for _, p := range parameters {
		s := c.add("$"+p.Name.Text, p.Name.Pos, true)
		s.kind, s.why = p.Type, "as declared"
	}
}

func (c *clause) add(name string, pos Position, parameter bool) *slot {
	s := &slot{
		name: name, pos: pos, parameter: parameter, order: len(c.slots), firstAtom: noAtom,
	}
	if parameter {
		s.parameters = []*slot{s}
	}
	c.slots = append(c.slots, s)
	c.names[name] = s
	return s
}

// slotOf returns the slot of a term, nil for constants and wildcards and for
// names that the clause does not have.
func (c *clause) slotOf(t parse.Term) *slot {
	switch t.Kind {
	case parse.Variable:
		return c.names[t.Name]
	case parse.Parameter:
		return c.names["$"+t.Name]
	}
	return nil
}

// mention makes the slot of a term that appears for the first time.
func (a *analyser) mention(c *clause, t parse.Term, use string) *slot {
	s := c.slotOf(t)
	switch {
	case s == nil && t.Kind == parse.Variable:
		s = c.add(t.Name, t.Pos, false)
	case s == nil && t.Kind == parse.Parameter && c.where == inQuery:
		s = c.add("$"+t.Name, t.Pos, true)
	case s == nil && t.Kind == parse.Parameter:
		a.unknownParameter(c, t)
		s = c.add("$"+t.Name, t.Pos, true) // reported once
	}
	if s != nil && s.use == "" {
		s.use = use
	}
	return s
}

func (a *analyser) unknownParameter(c *clause, t parse.Term) {
	what := "view"
	switch c.where {
	case inRule:
		a.fail(t.Pos, "write a variable or a value; a view can bind it",
			"only views and actions have parameters, and $%s stands in a rule", t.Name)
		return
	case inTransaction:
		a.fail(t.Pos, "write the value; an action has parameters",
			"a transaction has no parameters")
		return
	case inAction:
		what = "action"
	}
	var declared []string
	for _, p := range c.declared {
		declared = append(declared, p.Name.Text)
	}
	hint := "declare it behind the name of the " + what + ": $" + t.Name + ": type"
	if near := nearest(t.Name, declared); near != "" {
		hint = "did you mean $" + near + "?"
	}
	a.fail(t.Pos, hint, "the %s has no parameter $%s", what, t.Name)
}

// resolveRule resolves the body and checks that it binds the head.
func (a *analyser) resolveRule(c *clause) {
	id, ok := a.program.names[c.head.Relation.Text]
	if ok {
		a.checkHeadArity(&a.program.Relations[id], c.head)
	}
	a.resolveBody(c)
	if !slices.ContainsFunc(c.literals, literal.positive) {
		what, hint := "no relation", "facts are inserted by transactions (heddle write)"
		if slices.ContainsFunc(c.literals, func(l literal) bool { return l.negated }) {
			what = "negated relations only"
			hint = "add a relation that holds the values to try: thing(X), !e(X, _)"
		}
		a.fail(c.head.Relation.Pos, hint, "the body of the rule has %s", what)
		return
	}
	a.resolveHead(c)
	a.settle(c)
}

// positive reports whether the literal is an atom that is not negated.
func (l literal) positive() bool { return l.atom != nil && !l.negated }

// resolveHead makes the slots of the head's expressions.
func (a *analyser) resolveHead(c *clause) {
	flat := *c.head
	flat.Terms = make([]parse.Term, len(c.head.Terms))
	for i, t := range c.head.Terms {
		switch s := c.slotOf(t); {
		case t.Kind == parse.Wildcard:
			a.fail(t.Pos, "name a variable of the body or a value",
				"`_` stands for any value and cannot stand in a head")
		case t.Kind == parse.Parameter && s == nil:
			a.unknownParameter(c, t)
		case t.Kind == parse.Variable && s == nil:
			a.fail(t.Pos, c.unboundHint(t.Name), "the body does not bind %s", t.Name)
		case t.Kind == parse.Aggregated:
			t = a.resolveAggregate(c, t)
		}
		flat.Terms[i] = a.flatten(c, t, len(c.conditions))
	}
	c.head = &flat
	a.checkAggregates(c)
}

func (a *analyser) checkHeadArity(r *Relation, head *parse.Atom) {
	if r.Derived && len(r.Columns) != len(head.Terms) {
		a.fail(head.Relation.Pos, "all rules of one relation have the same number of columns",
			"%s has %s here and %s in line %d", r.Name, plural(len(head.Terms), "column"),
			plural(len(r.Columns), "column"), r.Pos.Line)
	}
}

// unboundHint returns what the writer of an unbound variable may have meant.
func (c *clause) unboundHint(name string) string {
	switch name {
	case "True", "TRUE", "False", "FALSE":
		return "true and false are written in lower case"
	}
	var bound []string
	for _, s := range c.slots {
		if !s.parameter && s.call == nil && s.name != name && s.firstAtom != noAtom {
			bound = append(bound, s.name)
		}
	}
	if near := nearest(name, bound); near != "" {
		return "did you mean " + near + "?"
	}
	return "a variable is bound where it stands in a relation; add one that has " + name
}

// resolveClause does all of a query's names.
func (a *analyser) resolveClause(c *clause) {
	a.takeLimit(c)
	a.resolveBody(c)
	a.settle(c)
}

// resolveBody looks up the relations and functions of the body and makes its slots.
func (a *analyser) resolveBody(c *clause) {
	for i, l := range c.conditions {
		flat := literal{negated: l.Negated, comparison: l.Comparison}
		if l.Atom == nil {
			for _, t := range [2]*parse.Term{&flat.comparison.Left, &flat.comparison.Right} {
				*t = a.flatten(c, *t, i)
				a.mention(c, *t, "compared")
			}
			c.literals = append(c.literals, flat)
			continue
		}
		flat.relation = a.lookUp(c, l.Atom, c.goal && i == 0)
		atom := *l.Atom
		atom.Terms = make([]parse.Term, len(l.Atom.Terms))
		for j, t := range l.Atom.Terms {
			t = a.flatten(c, t, i)
			atom.Terms[j] = t
			if l.Negated {
				a.mention(c, t, "negated")
			} else if s := a.mention(c, t, "found"); s != nil {
				s.firstAtom = min(s.firstAtom, i)
			}
		}
		flat.atom = &atom
		c.literals = append(c.literals, flat)
	}
}

// settle makes the classes, orders the calls, and checks that every slot is bound.
func (a *analyser) settle(c *clause) {
	for _, l := range c.literals {
		if l.atom == nil && !c.unify(l.comparison) {
			c.kept = append(c.kept, l.comparison)
		}
	}
	c.place()
	a.reportUnbound(c)
}

// reportUnbound fails for classes that nothing binds. Of those that only lack what
// they are computed from nothing is said, unless they lack each other.
func (a *analyser) reportUnbound(c *clause) {
	reported := map[*slot]bool{}
	var circular *slot
	for _, s := range c.slots {
		root := s.root()
		switch {
		case root.bound || reported[root] || s.call != nil:
			continue
		case len(root.calls) > 0:
			if circular == nil {
				circular = s
			}
			continue
		}
		reported[root] = true
		hint := c.unboundHint(s.name)
		if s.use != "negated" {
			a.fail(s.pos, hint, "%s is %s, but the body does not bind it", s.name, s.use)
			continue
		}
		if !strings.HasPrefix(hint, "did") {
			hint = "write _ if any value will do, or add a relation that has " + s.name
		}
		a.fail(s.pos, hint, "%s stands under a negation, but the body does not bind it", s.name)
	}
	if circular != nil && len(reported) == 0 {
		a.fail(circular.pos, c.unboundHint(circular.name),
			"%s is computed from itself, and the body does not bind it", circular.name)
	}
}

// lookUp returns the relation of an atom, and -1 after an error.
func (a *analyser) lookUp(c *clause, atom *parse.Atom, isGoal bool) RelationID {
	name := atom.Relation.Text
	id, ok := a.program.names[name]
	if other, isLeaf := a.leaves[name]; isLeaf && !ok {
		where := ""
		if other.pos.Line > 0 {
			where = " in line " + plainInt(other.pos.Line)
		}
		hint := "rules read relations only; write what the view" + where + " asks for"
		switch {
		case other.what != "a view":
			hint = ""
		case isGoal:
			hint = "ask for what the view" + where + " asks for, or watch the view (heddle watch)"
		}
		a.fail(atom.Relation.Pos, hint, "%s is %s, not a relation", name, other.what)
		return -1
	}
	if !ok {
		message, hint := a.program.unknownRelation(name, false)
		switch {
		case builtin.Lookup(name) != nil:
			hint = name + " is a function; compare what it gives: " + name + "(...) = X"
		case name == clockName:
			hint = "write clock every 10s in the program; the graph then keeps its row"
		case name == "limit" && c.where != inRule:
			hint = "a limit stands at the end of a query: ... limit 50"
		}
		a.fail(atom.Relation.Pos, hint, "%s", message)
		return -1
	}
	if r := &a.program.Relations[id]; len(r.Columns) != len(atom.Terms) {
		hint := "write " + signature(r)
		if len(atom.Terms) < len(r.Columns) {
			hint = "it is " + signature(r) + "; write _ for a column that does not matter"
		}
		a.fail(atom.Relation.Pos, hint, "%s has %s, and %s", name,
			plural(len(r.Columns), "column"), hereAre(len(atom.Terms), "argument"))
		return -1
	}
	return id
}

// unify joins the classes of an equality, and reports whether that says all it
// says.
func (c *clause) unify(cmp parse.Comparison) bool {
	left, right := c.slotOf(cmp.Left), c.slotOf(cmp.Right)
	switch {
	case cmp.Op != parse.Eq || left == nil && right == nil:
		return false
	case left == nil:
		right.root().addConstant(cmp.Left)
	case right == nil:
		left.root().addConstant(cmp.Right)
	default:
		join(left.root(), right.root())
	}
	return true
}

func (s *slot) addConstant(t parse.Term) {
	for _, other := range s.constants {
		if other.Value == t.Value {
			return
		}
	}
	s.constants = append(s.constants, t)
}

// join makes one class of two.
func join(x, y *slot) {
	if x == y {
		return
	}
	if y.order < x.order {
		x, y = y, x
	}
	if x.call != nil && y.call == nil {
		x, y = y, x // a class is called like its variable
	}
	y.parent = x
	x.firstAtom = min(x.firstAtom, y.firstAtom)
	x.parameters = append(x.parameters, y.parameters...)
	x.calls = append(x.calls, y.calls...)
	for _, t := range y.constants {
		x.addConstant(t)
	}
}

// checkParameters fails for the parameters of a view or action that none of its
// clauses mentions. who is "the query of v does".
func (a *analyser) checkParameters(who string, declared []parse.TypedName, clauses []*clause) {
	used := map[string]bool{}
	var variables []string
	for _, c := range clauses {
		for name, s := range c.names {
			switch {
			case s.parameter && s.use != "":
				used[name[1:]] = true
			case !s.parameter && s.call == nil:
				variables = append(variables, name)
			}
		}
	}
	slices.Sort(variables)
	for _, p := range declared {
		if used[p.Name.Text] {
			continue
		}
		hint := "write $" + p.Name.Text + ", or remove the parameter"
		if near := nearest(p.Name.Text, variables); near != "" {
			hint = "write $" + p.Name.Text + " instead of " + near + "?"
		}
		a.fail(p.Name.Pos, hint, "%s not use $%s", who, p.Name.Text)
	}
}
