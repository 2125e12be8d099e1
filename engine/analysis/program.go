// Package analysis turns parsed text into checked programs: names resolved,
// arities and column types settled, every head and parameter bound. What it
// returns is immutable and safe for concurrent use. It evaluates nothing and
// keeps no facts; the engine compiles its output into plans.
package analysis

import (
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// Position is a place in source text. The zero Position means "not from a
// text".
type Position = parse.Position

// Column is one named, statically typed column. Only a Nullable one holds null.
type Column struct {
	Name     string
	Type     value.Kind
	Nullable bool
}

// Relation is a base relation (declared by a schema) or a derived one (defined
// by rules). Its index in Program.Relations is its RelationID in that program.
type Relation struct {
	Name    string
	Columns []Column
	Derived bool
	Was     string // the name that a base relation had before, "" for none
	Pos     Position
}

// RelationID indexes Program.Relations. It is valid for one Program only.
type RelationID int

// Term is a variable (Var >= 0, an index into the rule's variables) or, if Var
// is negative, the constant Const. Every `_` is a variable of its own that
// occurs once.
type Term struct {
	Var   int
	Const value.Value
}

// ConstTerm returns the term of a constant.
func ConstTerm(v value.Value) Term { return Term{Var: -1, Const: v} }

// IsConst reports whether the term is a constant.
func (t Term) IsConst() bool { return t.Var < 0 }

// Atom is an occurrence of a relation; len(Terms) is its arity.
type Atom struct {
	Relation RelationID
	Terms    []Term
}

// Operator is a comparison operator. Equality is substituted away by the
// analysis where it binds, and stays where both sides are known.
type Operator uint8

// The comparison operators.
const (
	Eq Operator = iota
	Ne
	Lt
	Le
	Gt
	Ge
)

// Holds reports whether the comparison is true of two values that value.Compare
// orders so.
func (op Operator) Holds(order int) bool {
	switch op {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	}
	return order >= 0
}

// Comparison filters on two terms of one kind, each constant or bound by the
// body's atoms, computations or parameters. Two constants mean that the body never
// holds; what always holds is left out.
type Comparison struct {
	Op          Operator
	Left, Right Term
}

// Computation binds the variable Out, which no atom binds before it and no other
// computation binds, to a function of terms that are constant or bound. Nested
// expressions are flattened into several, with variables without names between
// them.
type Computation struct {
	Out      int
	Function *builtin.Function
	Args     []Term
	Pos      Position
}

// Variable is one variable of a body. Name is "" for `_` and for the inside of an
// expression.
type Variable struct {
	Name     string
	Type     value.Kind
	Nullable bool
}

// Body is a conjunction of literals over Variables.
//
// A negation holds if no row of its relation matches. A variable that stands in a
// negation and nowhere else is a `_` there; every other one is bound by an atom, a
// computation or a parameter.
//
// Computations stand in an order in which each has its arguments. An atom or a
// negation may use what a computation binds. That divides the literals into
// stages: a variable of an atom that no computation binds is of the earliest stage
// among its atoms; a computation is of the latest stage among its arguments; and a
// literal that uses the result of a computation of stage s is of stage s+1 if it
// is an atom or negation, and an atom binds its other variables there. Within a
// stage, comparisons that use no result of a computation hold before anything is
// computed; then the computations run in order, and each comparison is tested as
// soon as its sides are known. The first that fails makes one row error for each
// binding of the stage's atoms.
type Body struct {
	Atoms        []Atom
	Negations    []Atom
	Comparisons  []Comparison
	Computations []Computation
	Variables    []Variable
}

// AggregateKind is one of the aggregates of the language; 0 is none.
type AggregateKind uint8

// The aggregates. Count to Max give one row for each group that has a binding; the
// others give several, and stand alone in their head.
const (
	NoAggregate   AggregateKind = iota
	Count                       // bindings whose argument is not null: int
	CountDistinct               // different values of the argument: int
	Sum                         // int or float, like its argument
	Avg                         // float
	Min
	Max
	TopK          // the K first of the different values, by value
	TopKThreshold // the same among those at or past Threshold
	WithinRadius  // the different values up to Threshold
)

// Aggregate is an aggregated column of a head. It ranges over the distinct bindings
// of all variables of its clause's body, `_` included; null arguments are left out.
// Where nothing else is left, Sum, Avg, Min and Max are null, and the counts 0.
// The columns of the head that are not aggregated are the group. Each clause of a
// relation aggregates by itself.
type Aggregate struct {
	Kind       AggregateKind
	Arg        Term // constant in count<1>
	K          int64
	Threshold  value.Value
	Descending bool
}

// Rule is one clause of a derived relation. Every variable of Head is bound by the
// body's atoms or computations.
type Rule struct {
	Head Atom
	// Aggregates is nil, or has one entry for each column of Head; the Terms of
	// aggregated columns have no meaning.
	Aggregates []Aggregate
	Body       Body
	Pos        Position
	Text       string // in one spelling: blanks and line breaks make no difference
}

// Query is a goal with conditions. Its first len(Parameters) variables are the
// parameters, bound by the caller; all other variables of Output occur in an
// atom. Output lists the result's columns: the goal's arguments in order
// (constants and parameters included, `_` excluded), then the other named
// variables of the body in order of first appearance. Body.Atoms[0] is the goal.
//
// With a Limit, only the rows from Offset to Offset+Limit count, in the order of
// Order and, among equals, of the columns from left to right.
type Query struct {
	Parameters []Column
	Body       Body
	Output     []Term
	Columns    []Column // names and types of Output
	Order      []Order
	Limit      int    // 0: none
	Offset     int    // only with a Limit
	Text       string // canonical: queries of one text differ at most in names
}

// Order sorts by one column of Output.
type Order struct {
	Column     int
	Descending bool
}

// View is a named query, or several under names of their own with the same
// parameters. Views are leaves: no rule reads them. They share one namespace with
// relations, and one with actions.
type View struct {
	Name       string
	Parameters []Column
	Parts      []Part // one without a name, or several with different names
	Pos        Position
	Text       string // the declaration in one spelling
}

// Part is one query of a view. Its Query's Parameters are the view's.
type Part struct {
	Name  string // "" for the only one
	Query Query
}

// Query returns the query of the view's first part.
func (v *View) Query() *Query { return &v.Parts[0].Query }

// Statement is one step of a transaction or action: plain rows, or heads that are
// written for each row of a query, which is evaluated once, when the statement's
// turn comes. Statements see what those before them wrote.
type Statement struct {
	Ops []Op // of plain rows; Heads is nil then
	// Heads are written for each row of Query; deletions go first.
	Heads []WriteHead
	// Query has the action's parameters. Its Body may be empty, and Output lists
	// what the heads use, or the constant true. Body.Atoms[0] is no goal.
	Query *Query
	Pos   Position
	Text  string
}

// WriteHead is a row to insert or delete for each row of a statement's query. A
// Term's Var is a column of that query's Output.
type WriteHead struct {
	Relation string
	Delete   bool
	Terms    []Term
}

// Action is a named write with parameters. Actions share one namespace with views,
// and none with relations: `action claim(…) := +claim(…) <- …` is usual.
type Action struct {
	Name       string
	Parameters []Column
	Statements []Statement
	Pos        Position
	Text       string // the declaration in one spelling
}

// Fact is one row of a base relation.
type Fact struct {
	Relation string
	Row      []value.Value
}

// Op is one operation of a transaction on a base relation: an insertion, or with
// Delete a deletion, of one row. The row may alias the text it was read from.
type Op struct {
	Relation string
	Delete   bool
	Row      []value.Value
}

// Program is a graph's whole, checked program. Relations, Rules, Views and Actions
// are in order of the text. Immutable.
type Program struct {
	Relations []Relation
	Rules     []Rule
	Views     []View
	Actions   []Action
	Seed      []Fact // applied when the graph is new
	// ClockMillis is how often the row of relation clock(second: timestamp) is
	// replaced, 0 for a program without a clock.
	ClockMillis int64
	Source      string // the text as it was given

	names map[string]RelationID // nil in programs made by hand
}

// RelationNamed returns the relation called name, and false if there is none.
func (p *Program) RelationNamed(name string) (RelationID, bool) {
	if p.names != nil {
		id, ok := p.names[name]
		return id, ok
	}
	for i := range p.Relations {
		if p.Relations[i].Name == name {
			return RelationID(i), true
		}
	}
	return 0, false
}

// ViewNamed returns the view called name, or nil.
func (p *Program) ViewNamed(name string) *View {
	for i := range p.Views {
		if p.Views[i].Name == name {
			return &p.Views[i]
		}
	}
	return nil
}

// ActionNamed returns the action called name, or nil.
func (p *Program) ActionNamed(name string) *Action {
	for i := range p.Actions {
		if p.Actions[i].Name == name {
			return &p.Actions[i]
		}
	}
	return nil
}

// String spells the column as in braces: {age int}, {age int?}.
func (c Column) String() string {
	if c.Nullable {
		return "{" + c.Name + " " + c.Type.String() + "?}"
	}
	return "{" + c.Name + " " + c.Type.String() + "}"
}
