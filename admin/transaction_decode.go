package admin

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/sdk/frame"
)

// decodeTransaction reads the JSON form of a transaction,
//
//	{"insert": {"edge": [[1, 2], [2, 3]]}, "delete": {"edge": [[4, 5]]}}
//
// or {"program": "+edge(1, 2)"}, whose text it returns instead of ops; each may have
// "expect_revision" beside it. Rows are typed by program. Deletions stand before
// insertions whatever the order of the members, so that a row that is in both is there
// afterwards. The ops' strings may be slices of src. Errors are Problems; rows that
// are wrong are all counted and the first errorsMax named.
func decodeTransaction(program *analysis.Program, src string) (decoded, error) {
	if err := checkUTF8(src); err != nil {
		return decoded{}, err
	}
	d := transactionDecoder{scanner: scanner{src: src}, program: program}
	if err := d.transaction(); err != nil {
		return decoded{}, jsonProblem(src, err)
	}
	if err := d.errors.problem("the transaction is refused"); err != nil {
		return decoded{}, err
	}
	return d.decoded, nil
}

// decoded is the JSON form of a transaction: ops, or else text.
type decoded struct {
	ops        []Op
	text       string
	atRevision *uint64 // nil if absent
}

// rowArena cuts rows from chunks that grow, so that one row costs one small
// allocation and a thousand rows a few.
type rowArena struct{ chunk []value.Value }

// take returns a row of n invalid values, which is the caller's.
func (a *rowArena) take(n int) []value.Value {
	if cap(a.chunk)-len(a.chunk) < n {
		const chunkMax = 1024
		a.chunk = make([]value.Value, 0, max(n, min(2*cap(a.chunk), chunkMax)))
	}
	from := len(a.chunk)
	a.chunk = a.chunk[:from+n]
	return a.chunk[from : from+n : from+n]
}

// transactionDecoder is the state of one decodeTransaction.
type transactionDecoder struct {
	scanner
	decoded
	program *analysis.Program
	rows    rowArena
	errors  rowErrors

	sawInsert, sawDelete, sawText bool
	relation                      *analysis.Relation
	section                       string
	row                           int // of the present relation, from 1
	firstDelete                   int // index in ops where the deletions begin
	seen                          []*analysis.Relation
}

const transactionHint = `send {"insert": {"RELATION": [[…], …]}, "delete": {…}} ` +
	`or {"program": "+edge(1, 2)"}`

const (
	intRange   = "ints reach from -9223372036854775808 to 9223372036854775807"
	floatRange = "floats reach to 1.7976931348623157e308"
)

func (d *transactionDecoder) transaction() error {
	known := []string{"insert", "delete", "program", expectFlag.name}
	err := d.members(known, transactionHint, func(name string) error {
		switch name {
		case "insert":
			d.sawInsert = true
			return d.relations("insert")
		case "delete":
			d.sawDelete, d.firstDelete = true, len(d.ops)
			return d.relations("delete")
		case expectFlag.name:
			d.atRevision = new(uint64)
			return d.uintMember(name, math.MaxInt64, d.atRevision)
		default:
			d.sawText = true
			return d.stringMember("program", &d.text)
		}
	})
	switch {
	case err != nil:
		return err
	case d.sawText && d.text == "":
		return &scanError{message: `"program" is empty`, hint: transactionHint}
	case d.sawText && (d.sawInsert || d.sawDelete):
		return &scanError{message: `"program" stands alone, without "insert" and "delete"`}
	case !d.sawText && !d.sawInsert && !d.sawDelete:
		return &scanError{message: "the transaction is empty", hint: transactionHint}
	}
	if d.firstDelete > 0 {
		d.deletionsFirst()
	}
	return nil
}

// deletionsFirst moves the deletions, which follow the insertions, before them.
func (d *transactionDecoder) deletionsFirst() {
	ordered := make([]Op, 0, len(d.ops))
	ordered = append(ordered, d.ops[d.firstDelete:]...)
	d.ops = append(ordered, d.ops[:d.firstDelete]...)
}

// relations reads {"edge": [[1, 2], …], …}.
func (d *transactionDecoder) relations(section string) error {
	d.section, d.seen = section, d.seen[:0]
	if d.ops == nil {
		const rowBytes, opsMax = 24, 256 // a guess, which growth corrects
		d.ops = make([]Op, 0, min(1+len(d.src)/rowBytes, opsMax))
	}
	return d.object(`an object {"RELATION": [[…], …]}`, func(name string, at int) error {
		relation, problem := baseRelation(d.program, name)
		if problem != nil {
			line, column := lineColumn(d.src, at)
			return problem.withErrors([]Detail{{
				Message: problem.Detail, Hint: problem.Hint,
				Location: section + "." + shortened(name), Line: line, Column: column,
			}}, 1)
		}
		if slices.Contains(d.seen, relation) {
			return d.failAt(at, "%q appears twice under %q; put all its rows in one list",
				name, section)
		}
		d.seen = append(d.seen, relation)
		d.relation = relation
		return d.array("a list of rows [[…], …]", func(index, at int) error {
			d.row = index + 1
			return d.readRow(at)
		})
	})
}

// readRow reads one row. A row of wrong shape or with wrong values is noted and
// skipped; only malformed JSON is returned as an error.
func (d *transactionDecoder) readRow(at int) error {
	columns := d.relation.Columns
	if d.peek() != '[' {
		got := d.shown()
		if err := d.skip(nestingMax); err != nil {
			return err
		}
		d.note(at, arityError(d.relation.Name, d.row, columns, got+" (a row is a list of values)"))
		return nil
	}
	row := d.rows.take(len(columns))
	count, before := 0, d.errors.total
	err := d.array("a list of values", func(index, at int) error {
		count = index + 1
		if index >= len(columns) {
			return d.skip(nestingMax)
		}
		v, got, hint, err := d.cell(columns[index])
		if err != nil {
			return err
		}
		if got != "" {
			d.note(at, cellError(d.relation.Name, d.row, columns[index], got, hint))
		}
		row[index] = v
		return nil
	})
	if err != nil {
		return err
	}
	if count != len(columns) {
		d.note(at, arityError(d.relation.Name, d.row, columns, strconv.Itoa(count)))
	}
	if d.errors.total == before {
		op := Op{Relation: d.relation.Name, Delete: d.section == "delete", Row: row}
		d.ops = append(d.ops, op)
	}
	return nil
}

// note records an error of the row that begins or fails at offset at.
func (d *transactionDecoder) note(at int, detail Detail) {
	if d.errors.total < errorsMax {
		detail.Line, detail.Column = lineColumn(d.src, at)
		detail.Location = d.section + "." + d.relation.Name + "[" + strconv.Itoa(d.row-1) + "]"
	}
	d.errors.add(detail)
}

// cell reads one value of a column. If it is of another kind, got says what it is
// and hint what to write; err is malformed JSON only.
func (s *scanner) cell(column analysis.Column) (v value.Value, got, hint string, err error) {
	kind := column.Type
	switch c := s.peek(); {
	case c == '"':
		text, err := s.str()
		if err != nil {
			return v, "", "", err
		}
		v, got, hint = stringCell(kind, text)
		return v, got, hint, nil
	case c == '-' || isDigit(c):
		text, integer, err := s.number()
		if err != nil {
			return v, "", "", err
		}
		v, got, hint = numberCell(kind, text, integer)
		return v, got, hint, nil
	case c == '{' || c == '[':
		got = s.shown()
		return v, got, "", s.skip(nestingMax)
	}
	word, err := s.word()
	if err != nil {
		return v, "", "", err
	}
	if kind == value.Bool && word != "null" {
		return value.OfBool(word == "true"), "", "", nil
	}
	if word == "null" {
		if column.Nullable {
			return value.OfNull(), "", "", nil
		}
		hint = nullHint(column)
	}
	return v, word, hint, nil
}

func nullHint(c analysis.Column) string {
	return "the column is not nullable; leave the row out, or declare " + c.Name + ": " +
		c.Type.String() + "?"
}

// stringCell is a cell written as a JSON string: a string, bytes in base64, a time of
// RFC 3339, or an int in decimal digits, which is how integers beyond 2^53-1 travel
// safely through JavaScript.
func stringCell(kind value.Kind, text string) (v value.Value, got, hint string) {
	switch kind {
	case value.String:
		return value.OfString(text), "", ""
	case value.Int:
		if i, ok := canonicalInt(text); ok {
			return value.OfInt(i), "", ""
		}
		if _, err := strconv.ParseInt(text, 10, 64); errors.Is(err, strconv.ErrRange) {
			return v, strconv.Quote(shortened(text)), intRange
		}
		hint = "write 7 without quotes; " +
			"only decimal digits may be quoted, for integers beyond 2^53-1"
	case value.Float, value.Bool:
		hint = "write it without quotes"
	case value.Bytes:
		if b, ok := frame.ParseBase64(text); ok {
			return value.OfBytes(string(b)), "", ""
		}
		hint = base64Hint
	case value.Timestamp:
		if ms, ok := timeOf(text); ok {
			return value.OfTimestamp(ms), "", ""
		}
		hint = timeHint
	}
	return v, strconv.Quote(shortened(text)), hint
}

const (
	base64Hint = `write the bytes in base64 with padding, such as "AP8="`
	timeHint   = `write the milliseconds since 1970, or a time such as "2026-11-30T12:00:00Z"`
)

// timeOf reads a timestamp that is no JSON number: a time of RFC 3339, or milliseconds
// in decimal digits.
func timeOf(text string) (ms int64, ok bool) {
	if ms, ok = value.ParseTime(text); ok {
		return ms, true
	}
	return canonicalInt(text)
}

// canonicalInt reads an int64 in its one spelling: no sign but -, no leading zeros.
func canonicalInt(text string) (int64, bool) {
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(i, 10) != text {
		return 0, false
	}
	return i, true
}

// numberCell is a cell written as a JSON number.
func numberCell(kind value.Kind, text string, integer bool) (v value.Value, got, hint string) {
	switch kind {
	case value.Int, value.Timestamp:
		if f, err := strconv.ParseFloat(text, 64); !integer && (err != nil || math.IsInf(f, 0)) {
			return v, shortened(text), intRange
		}
		if !integer {
			return v, shortened(text), "an int has neither fraction nor exponent"
		}
		if i, err := strconv.ParseInt(text, 10, 64); err == nil && kind == value.Timestamp {
			return value.OfTimestamp(i), "", ""
		} else if err == nil {
			return value.OfInt(i), "", ""
		}
		return v, shortened(text), intRange
	case value.Float:
		// Too small a number rounds to 0, too large a one is an error.
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) {
			v, _ = value.OfFloat(f)
			return v, "", ""
		}
		return v, shortened(text), floatRange
	case value.String:
		hint = "write it in double quotes"
	case value.Bytes:
		hint = base64Hint
	}
	return v, shortened(text), hint
}
