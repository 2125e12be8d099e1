package admin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// rowErrors collects what is wrong with the rows of one request: all are
// counted, the first errorsMax kept.
type rowErrors struct {
	details []Detail
	total   int
}

func (e *rowErrors) add(d Detail) {
	e.total++
	if len(e.details) < errorsMax {
		e.details = append(e.details, d)
	}
}

// problem returns the answer, or nil if nothing was added.
func (e *rowErrors) problem(what string) error {
	if e.total == 0 {
		return nil
	}
	noun := "errors"
	if e.total == 1 {
		noun = "error"
	}
	p := newProblem(400, "rows_invalid", "%s: %d %s; nothing was written", what, e.total, noun)
	return p.withErrors(e.details, e.total)
}

// cellError says that got does not belong into a column.
func cellError(relation string, row int, column analysis.Column, got, hint string) Detail {
	expected := expectedOf(column.Type)
	if column.Nullable {
		expected += " or null"
	}
	return Detail{
		Message: fmt.Sprintf("row %d of %s, column %s: expected %s, got %s",
			row, relation, column.Name, expected, got),
		Hint: hint, Relation: relation, Row: row, ColumnName: column.Name,
		Expected: expected, Got: got,
	}
}

// arityError says that a row has the wrong number of values.
func arityError(relation string, row int, columns []analysis.Column, got string) Detail {
	expected := strconv.Itoa(len(columns)) + " values"
	if len(columns) == 1 {
		expected = "1 value"
	}
	return Detail{
		Message: fmt.Sprintf("row %d of %s: expected %s, got %s", row, relation, expected, got),
		Hint:    "the columns are " + columnList(columns), Relation: relation, Row: row,
		Expected: expected, Got: got,
	}
}

// columnList spells columns as a schema does: (src: int, dst: int).
func columnList(columns []analysis.Column) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name + ": " + c.Type.String())
		if c.Nullable {
			b.WriteByte('?')
		}
	}
	b.WriteByte(')')
	return b.String()
}

func expectedOf(k value.Kind) string {
	switch k {
	case value.Int:
		return "an int"
	case value.Float:
		return "a float"
	case value.String:
		return "a string"
	case value.Bool:
		return "true or false"
	case value.Bytes:
		return "bytes in base64"
	default:
		return "a " + k.String()
	}
}

// shortened returns at most 40 characters of s for an error message.
func shortened(s string) string {
	const charactersMax = 40
	if utf8.RuneCountInString(s) <= charactersMax {
		return s
	}
	n := 0
	for i := range s {
		if n == charactersMax {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// baseRelation finds the base relation that rows are written to. The error is a
// Problem that names the nearest relation, or says why a derived one takes no rows.
func baseRelation(p *analysis.Program, name string) (*analysis.Relation, *Problem) {
	if id, ok := p.RelationNamed(name); ok {
		r := &p.Relations[id]
		if !r.Derived {
			return r, nil
		}
		return nil, newProblem(400, "relation_derived",
			"%s is defined by rules, so no rows can be written to it", name).
			withHint("write to the relations that its rules read")
	}
	known := make([]string, 0, len(p.Relations))
	for i := range p.Relations {
		if !p.Relations[i].Derived {
			known = append(known, p.Relations[i].Name)
		}
	}
	if p.ViewNamed(name) != nil {
		return nil, newProblem(404, "relation_unknown",
			"%s is a view; rows are written to base relations", name)
	}
	fallback := "the base relations are " + strings.Join(known[:min(len(known), 10)], ", ")
	if len(known) == 0 {
		fallback = "the program declares no relation yet; apply one such as +edge(src: int, " +
			"dst: int)"
	}
	return nil, newProblem(404, "relation_unknown", "there is no relation %q", shortened(name)).
		withHint("%s", didYouMean(name, known, fallback))
}
