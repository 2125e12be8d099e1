// Package analysis turns parsed text into checked programs: names resolved,
// arities and column types settled, every head and parameter bound. What it
// returns is immutable and safe for concurrent use. It evaluates nothing and
// keeps no facts; the engine compiles its output into plans.
package analysis

import (
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// Position is a place in source text. The zero Position means "not from a
// text".
type Position = parse.Position

// Column is one named, statically typed column.
type Column struct {
	Name string
	Type value.Kind
}

// Relation is a base relation (declared by a schema) or a derived one (defined
// by rules). Its index in Program.Relations is its RelationID in that program.
type Relation struct {
	Name    string
	Columns []Column
	Derived bool
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

// Atom is a positive occurrence of a relation; len(Terms) is its arity.
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

// Comparison filters on two terms of one kind, both constant or bound by the
// body's atoms or parameters. Two constants mean that the body never holds;
// what always holds is left out.
type Comparison struct {
	Op          Operator
	Left, Right Term
}

// Variable is one variable of a body. Name is "" for `_`.
type Variable struct {
	Name string
	Type value.Kind
}

// Body is a conjunction of atoms and comparisons over Variables.
type Body struct {
	Atoms       []Atom
	Comparisons []Comparison
	Variables   []Variable
}

// Rule is one clause of a derived relation. Every variable of Head occurs in
// the body's atoms.
type Rule struct {
	Head Atom
	Body Body
	Pos  Position
	Text string // in one spelling: blanks and line breaks make no difference
}

// Query is a goal with conditions. Its first len(Parameters) variables are the
// parameters, bound by the caller; all other variables of Output occur in an
// atom. Output lists the result's columns: the goal's arguments in order
// (constants and parameters included, `_` excluded), then the other named
// variables of the body in order of first appearance. Body.Atoms[0] is the goal.
type Query struct {
	Parameters []Column
	Body       Body
	Output     []Term
	Columns    []Column // names and types of Output
	Text       string   // canonical: queries of one text differ at most in names
}

// View is a named query. Views are leaves: no rule reads them. They share one
// namespace with relations.
type View struct {
	Name  string
	Query Query
	Pos   Position
	Text  string // the declaration in one spelling
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

// Program is a graph's whole, checked program. Relations, Rules and Views are in
// order of the text. Immutable.
type Program struct {
	Relations []Relation
	Rules     []Rule
	Views     []View
	Seed      []Fact // applied when the graph is new
	Source    string // the text as it was given

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
