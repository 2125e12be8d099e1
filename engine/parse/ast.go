package parse

import "github.com/heddle-live/heddle/engine/value"

// Position is a place in source text; both count from 1, columns in UTF-8
// characters. The zero Position means "not from a text".
type Position struct {
	Line, Column int
}

// Before reports whether p comes before q in one text.
func (p Position) Before(q Position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

// File is a parsed program, its statements by kind, each kind in order of the
// text. Trees hold what was written: names are not resolved.
type File struct {
	Schemas []Schema
	Rules   []Rule
	Views   []View
	Actions []Action
	Seeds   []Facts // none of them deletes
	Clock   *Clock  // nil without one
	Source  string
}

// TransactionTree is a parsed transaction; its statements apply in order.
type TransactionTree struct {
	Statements []Statement
	Source     string
}

// QueryTree is a goal with conditions, and which of its rows are wanted.
type QueryTree struct {
	Goal   Atom
	Body   []Literal
	Order  []Order
	Window Window
	Pos    Position // of the `?`
	Source string   // "" for the query of a view
}

// Order sorts by a variable of the query.
type Order struct {
	Term       Term
	Descending bool
}

// Window is `limit 50 offset 10`.
type Window struct {
	Limit  int // 0: none
	Offset int // only with a Limit
	Pos    Position
}

// Name is a name as written.
type Name struct {
	Text string
	Pos  Position
}

// TypedName is a column of a schema or a parameter of a view or action (without its
// `$`).
type TypedName struct {
	Name     Name
	Type     value.Kind
	Nullable bool // of a column: `age: int?`
}

// Schema declares a base relation: `+edge(src: int, dst: int)`, perhaps with the name
// that it had before: `+link(src: int, dst: int) was edge`.
type Schema struct {
	Relation Name
	Columns  []TypedName
	Was      Name // its Text is "" if there is none
	Pos      Position
}

// Rule is `head <- body`.
type Rule struct {
	Head Atom
	Body []Literal
}

// View is `view name($p: type) := ?query`, or several queries under names of their
// own: `orders: ?query, alerts: ?query`.
type View struct {
	Name       Name
	Parameters []TypedName
	Parts      []Part
	Pos        Position
}

// Part is one query of a view.
type Part struct {
	Name  Name // without text for the only one
	Query QueryTree
}

// Action is `action name($p: type) := statement; statement`.
type Action struct {
	Name       Name
	Parameters []TypedName
	Statements []Statement
	Pos        Position
}

// Statement is one step of a transaction or action.
type Statement struct {
	Facts Facts       // the rows, if Heads is nil
	Heads []WriteHead // what is written for each match of Body
	Body  []Literal   // nil without `<-`
	Pos   Position
}

// WriteHead is a row to insert, or with Delete to delete.
type WriteHead struct {
	Delete bool
	Atom   Atom
}

// Clock is `clock every 10s`.
type Clock struct {
	Millis int64
	Pos    Position
}

// Facts are rows to insert into or to delete from one relation. All terms of
// the rows are constants; rows may differ in width, which analysis refuses.
type Facts struct {
	Delete   bool
	Relation Name
	Rows     [][]Term
	Pos      Position
}

// Literal is one condition of a body: an atom, or else a comparison.
type Literal struct {
	Atom       *Atom // nil for a comparison
	Negated    bool  // of an atom
	Comparison Comparison
}

// Atom is a relation with its arguments.
type Atom struct {
	Relation Name
	Terms    []Term
}

// Operator is a comparison operator.
type Operator uint8

// The comparison operators, in the order of analysis.Op.
const (
	Eq Operator = iota
	Ne
	Lt
	Le
	Gt
	Ge
)

// Comparison compares two terms, neither of them a wildcard. An equality may also
// bind; the parser makes no difference.
type Comparison struct {
	Op          Operator
	Left, Right Term
	Pos         Position // of the operator
}

// TermKind tells what a Term is.
type TermKind uint8

// The kinds of terms.
const (
	Constant TermKind = iota
	Variable
	Parameter
	Wildcard
	Expression // a function of other terms
	Aggregated // stands in the head of a rule only
)

// Term is one argument of an atom or one side of a comparison.
type Term struct {
	Kind  TermKind
	Name  string      // of a Variable or, without its `$`, of a Parameter
	Value value.Value // of a Constant
	Call  *Call       // of an Expression or Aggregated
	Pos   Position    // of an operator's call, that of the operator
}

// Call applies a function, an operator (`+` `-` `*` `/` `%`, of two arguments; -X
// is 0 - X) or an aggregate.
type Call struct {
	Name       string
	Args       []Term // no wildcards
	Descending bool   // of top_k and top_k_threshold
}
