package parse

import (
	"fmt"
	"strings"
)

// This file writes trees as text in one spelling: a blank after each comma,
// around operators and arrows, nothing else. What it writes parses to the same
// tree, positions aside.

var operatorTexts = [...]string{Eq: "=", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">="}

// String returns the operator as written.
func (op Operator) String() string { return operatorTexts[op] }

// String returns the term in its one spelling.
func (t Term) String() string {
	switch t.Kind {
	case Variable:
		return t.Name
	case Parameter:
		return "$" + t.Name
	case Wildcard:
		return "_"
	case Expression:
		return t.Call.String()
	case Aggregated:
		return t.Call.aggregateText()
	}
	return t.Value.String()
}

// precedence returns how tightly an operator binds, 0 for a function.
func precedence(name string) int {
	switch name {
	case "+", "-":
		return 1
	case "*", "/", "%":
		return 2
	}
	return 0
}

// String returns the call in its one spelling, with no more parentheses than
// needed.
func (c *Call) String() string {
	level := precedence(c.Name)
	if level == 0 {
		return c.Name + tupleText(c.Args)
	}
	return operand(c.Args[0], level) + " " + c.Name + " " + operand(c.Args[1], level+1)
}

// operand returns an operand's text, in parentheses if it binds less tightly than
// level.
func operand(t Term, level int) string {
	if t.Kind == Expression {
		if inner := precedence(t.Call.Name); inner > 0 && inner < level {
			return "(" + t.String() + ")"
		}
	}
	return t.String()
}

func (c *Call) aggregateText() string {
	text := c.Name + "<" + join(c.Args, ", ")
	if c.Descending {
		text += ", desc"
	}
	return text + ">"
}

// String returns the comparison in its one spelling.
func (c Comparison) String() string {
	return c.Left.String() + " " + c.Op.String() + " " + c.Right.String()
}

// String returns the atom in its one spelling.
func (a Atom) String() string { return a.Relation.Text + tupleText(a.Terms) }

// String returns the condition in its one spelling.
func (l Literal) String() string {
	switch {
	case l.Negated:
		return "!" + l.Atom.String()
	case l.Atom != nil:
		return l.Atom.String()
	}
	return l.Comparison.String()
}

// String returns the rule in its one spelling.
func (r Rule) String() string { return r.Head.String() + " <- " + join(r.Body, ", ") }

// String returns the query in its one spelling.
func (q QueryTree) String() string {
	text := "?" + q.Goal.String()
	if len(q.Body) > 0 {
		text += ", " + join(q.Body, ", ")
	}
	if len(q.Order) > 0 {
		text += " order by " + join(q.Order, ", ")
	}
	return text + q.Window.String()
}

// String returns the term and its direction.
func (o Order) String() string {
	if o.Descending {
		return o.Term.String() + " desc"
	}
	return o.Term.String()
}

// String returns " limit 50 offset 10", "" for none.
func (w Window) String() string {
	switch {
	case w.Limit == 0:
		return ""
	case w.Offset == 0:
		return fmt.Sprintf(" limit %d", w.Limit)
	}
	return fmt.Sprintf(" limit %d offset %d", w.Limit, w.Offset)
}

// String returns the declaration in its one spelling.
func (s Schema) String() string {
	text := "+" + s.Relation.Text + "(" + typedNamesText("", s.Columns) + ")"
	if s.Was.Text != "" {
		text += " was " + s.Was.Text
	}
	return text
}

// String returns the declaration in its one spelling.
func (v View) String() string {
	parameters := typedNamesText("$", v.Parameters)
	return "view " + v.Name.Text + "(" + parameters + ") := " + join(v.Parts, ", ")
}

// String returns the query, behind the part's name if it has one.
func (p Part) String() string {
	if p.Name.Text == "" {
		return p.Query.String()
	}
	return p.Name.Text + ": " + p.Query.String()
}

// String returns the declaration in its one spelling.
func (a Action) String() string {
	parameters := typedNamesText("$", a.Parameters)
	return "action " + a.Name.Text + "(" + parameters + ") := " + join(a.Statements, "; ")
}

// String returns the statement in its one spelling.
func (s Statement) String() string {
	if s.Heads == nil {
		return s.Facts.String()
	}
	text := join(s.Heads, ", ")
	if s.Body != nil {
		text += " <- " + join(s.Body, ", ")
	}
	return text
}

// String returns the head in its one spelling.
func (h WriteHead) String() string {
	if h.Delete {
		return "-" + h.Atom.String()
	}
	return "+" + h.Atom.String()
}

// String returns the declaration in its one spelling.
func (c Clock) String() string {
	if c.Millis%1000 == 0 {
		return fmt.Sprintf("clock every %ds", c.Millis/1000)
	}
	return fmt.Sprintf("clock every %dms", c.Millis)
}

// String returns the statement in its one spelling, without the word seed.
func (f Facts) String() string {
	sign := "+"
	if f.Delete {
		sign = "-"
	}
	if len(f.Rows) == 1 {
		return sign + f.Relation.Text + tupleText(f.Rows[0])
	}
	rows := make([]string, len(f.Rows))
	for i, row := range f.Rows {
		rows[i] = tupleText(row)
	}
	return sign + f.Relation.Text + "[" + strings.Join(rows, ", ") + "]"
}

// String returns the transaction in its one spelling, one statement a line.
func (t TransactionTree) String() string { return join(t.Statements, "\n") }

// String returns the program in its one spelling, by kind of statement.
func (f File) String() string {
	var lines []string
	for _, s := range f.Schemas {
		lines = append(lines, s.String())
	}
	for _, r := range f.Rules {
		lines = append(lines, r.String())
	}
	for _, v := range f.Views {
		lines = append(lines, v.String())
	}
	for _, a := range f.Actions {
		lines = append(lines, a.String())
	}
	if f.Clock != nil {
		lines = append(lines, f.Clock.String())
	}
	for _, s := range f.Seeds {
		lines = append(lines, "seed "+s.String())
	}
	return strings.Join(lines, "\n")
}

func tupleText(terms []Term) string { return "(" + join(terms, ", ") + ")" }

func typedNamesText(sigil string, names []TypedName) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = sigil + n.Name.Text + ": " + n.Type.String()
		if n.Nullable {
			parts[i] += "?"
		}
	}
	return strings.Join(parts, ", ")
}

func join[T interface{ String() string }](items []T, separator string) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = item.String()
	}
	return strings.Join(parts, separator)
}
