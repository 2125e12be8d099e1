package admin

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/sdk/frame"
)

// decodeCSV reads rows of a relation from CSV (RFC 4180: commas, double quotes,
// line ends within quotes; empty lines are skipped). With a header, its names
// say which field belongs to which column; without, fields are in the schema's
// order. If any row is wrong, the error is a Problem that counts all of them and
// names the first errorsMax by line, column and reason. Errors of r are
// returned wrapped. More than rowsMax rows are an error.
func decodeCSV(r io.Reader, relation *analysis.Relation, header bool, rowsMax int) ([]Op, error) {
	d := csvDecoder{reader: csv.NewReader(r), relation: relation}
	d.reader.ReuseRecord = true
	d.reader.FieldsPerRecord = -1
	d.order = make([]int, len(relation.Columns))
	for i := range d.order {
		d.order[i] = i
	}
	if header {
		if err := d.readHeader(); err != nil {
			return nil, err
		}
	}
	for {
		record, err := d.reader.Read()
		if err == io.EOF {
			break
		}
		if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
			d.syntaxError(syntax)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read CSV: %w", err)
		}
		if d.row++; d.row > rowsMax {
			return nil, newProblem(http.StatusRequestEntityTooLarge, "rows_too_many",
				"the file has more than %d rows, this server's limit for one load", rowsMax).
				withHint("split the file; each part is one transaction")
		}
		d.readRow(record)
	}
	if err := d.errors.problem("the file is refused"); err != nil {
		return nil, err
	}
	return d.ops, nil
}

// csvDecoder is the state of one decodeCSV.
type csvDecoder struct {
	reader   *csv.Reader
	relation *analysis.Relation
	order    []int // by field, the column it belongs to
	row      int   // of the data, from 1
	ops      []Op
	rows     rowArena
	errors   rowErrors
}

// readHeader sets the order of columns by the first record. Every column must
// be named once and nothing else.
func (d *csvDecoder) readHeader() error {
	record, err := d.reader.Read()
	if err == io.EOF {
		return headerProblem("the file is empty; its first line must name the columns",
			d.relation, "")
	}
	if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
		return headerProblem(fmt.Sprintf("line %d is not CSV: %s", syntax.Line, syntax.Err),
			d.relation, "")
	}
	if err != nil {
		return fmt.Errorf("read CSV: %w", err)
	}
	columns := d.relation.Columns
	if len(record) == 1 && len(columns) > 1 {
		for _, separator := range []string{";", "\t", "|"} {
			if strings.Contains(record[0], separator) {
				detail := fmt.Sprintf("the fields seem to be separated by %q", separator)
				return headerProblem(detail, d.relation, "separate them by commas")
			}
		}
	}
	byName := make(map[string]int, len(columns))
	names := make([]string, len(columns))
	for i, c := range columns {
		byName[c.Name] = i
		names[i] = c.Name
	}
	d.order = d.order[:0]
	for _, field := range record {
		name := strings.TrimSpace(field)
		column, ok := byName[name]
		if !ok {
			return headerProblem(fmt.Sprintf("the header names %q, which is no column of %s",
				shortened(name), d.relation.Name), d.relation, didYouMean(name, names, headerHint))
		}
		if column < 0 {
			return headerProblem(fmt.Sprintf("the header names %s twice", name), d.relation, "")
		}
		byName[name] = -1
		d.order = append(d.order, column)
	}
	for _, name := range names {
		if byName[name] >= 0 {
			return headerProblem("the header lacks the column "+name, d.relation, "")
		}
	}
	return nil
}

const headerHint = "a file without a header is loaded with --no-header (?header=false)"

func headerProblem(detail string, relation *analysis.Relation, hint string) *Problem {
	p := newProblem(http.StatusBadRequest, "header_invalid", "%s", detail)
	p.Hint = "the columns of " + relation.Name + " are " + columnList(relation.Columns)
	if hint != "" {
		p.Hint = hint + "; " + p.Hint
	}
	return p.withErrors([]Detail{{Message: detail, Line: 1, Relation: relation.Name}}, 1)
}

// syntaxError notes where the text stops being CSV; nothing after it can be trusted.
func (d *csvDecoder) syntaxError(e *csv.ParseError) {
	hint := `a field with " or a line end stands in double quotes, and " in it is written ""`
	d.errors.add(Detail{
		Message: fmt.Sprintf("not CSV: %s; what follows was not read", e.Err), Hint: hint,
		Line: e.Line, Column: e.Column, Relation: d.relation.Name, Row: d.row + 1,
	})
}

func (d *csvDecoder) readRow(record []string) {
	columns := d.relation.Columns
	if len(record) != len(columns) {
		detail := arityError(d.relation.Name, d.row, columns, strconv.Itoa(len(record)))
		detail.Line, _ = d.reader.FieldPos(0)
		d.errors.add(detail)
		return
	}
	row, before := d.rows.take(len(columns)), d.errors.total
	for i, field := range record {
		column := columns[d.order[i]]
		v, hint := fieldValue(column, field)
		if v.Kind() == value.Invalid {
			got := strconv.Quote(shortened(field))
			detail := cellError(d.relation.Name, d.row, column, got, hint)
			detail.Line, _ = d.reader.FieldPos(i)
			d.errors.add(detail)
			continue
		}
		row[d.order[i]] = v
	}
	switch {
	case d.errors.total > before:
		// The load is refused: what was read is not needed any more.
		d.ops, d.rows = nil, rowArena{}
	case d.errors.total == 0:
		d.ops = append(d.ops, Op{Relation: d.relation.Name, Row: row})
	}
}

// fieldValue reads a field as a value of a column. If it cannot, the value is
// invalid and hint may say what to write. An empty field of a nullable column is null.
func fieldValue(column analysis.Column, field string) (v value.Value, hint string) {
	if field == "" && column.Nullable {
		return value.OfNull(), ""
	}
	switch column.Type {
	case value.Int:
		i, err := strconv.ParseInt(field, 10, 64)
		if err == nil && field[0] != '+' {
			return value.OfInt(i), ""
		}
		if errors.Is(err, strconv.ErrRange) {
			return v, intRange
		}
		return v, numberHint(field, "")
	case value.Float:
		if plainNumber(field) {
			if f, err := strconv.ParseFloat(field, 64); err == nil && !math.IsInf(f, 0) {
				v, _ = value.OfFloat(f)
				return v, ""
			}
			return v, floatRange
		}
		return v, numberHint(field, "write it like -1.5 or 2e10")
	case value.Bool:
		switch field {
		case "true":
			return value.OfBool(true), ""
		case "false":
			return value.OfBool(false), ""
		}
		return v, "write true or false"
	case value.String:
		if utf8.ValidString(field) {
			return value.OfString(field), ""
		}
		return v, "the field is not UTF-8; save the file as UTF-8"
	case value.Bytes:
		if b, ok := frame.ParseBase64(field); ok {
			return value.OfBytes(string(b)), ""
		}
		return v, "write the bytes in base64 with padding, such as AP8="
	case value.Timestamp:
		if ms, ok := timeOf(field); ok {
			return value.OfTimestamp(ms), ""
		}
		return v, "write the milliseconds since 1970, or a time such as 2026-11-30T12:00:00Z"
	}
	return v, ""
}

// numberHint says what to write instead of a field that is no number.
func numberHint(field, otherwise string) string {
	switch trimmed := strings.TrimSpace(field); {
	case trimmed == "":
		return "the field is empty; leave the row out, or write a number"
	case trimmed != field:
		return "no spaces around a number"
	case field[0] == '+' && plainNumber(field[1:]):
		return "write it without +: " + shortened(field[1:])
	case plainNumber(field):
		return "an int has neither fraction nor exponent"
	}
	return otherwise
}

// plainNumber reports whether s is a number as JSON spells it, so that names
// such as "inf" and hexadecimal forms are not floats.
func plainNumber(s string) bool {
	number := scanner{src: s}
	_, _, err := number.number()
	return err == nil && number.pos == len(s)
}
