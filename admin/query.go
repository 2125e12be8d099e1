package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/sdk/frame"
)

// queryBody documents a query; decodeQuery reads it.
type queryBody struct {
	Query       string         `json:"query" doc:"The query's text" example:"?edge($from, Y)"`
	Parameters  map[string]any `json:"parameters,omitempty" doc:"A value for each $name"`
	Limit       int            `json:"limit,omitempty" doc:"At most so many rows"`
	MinRevision uint64         `json:"min_revision,omitempty" doc:"Wait for this revision"`
	DeadlineMS  int            `json:"deadline_ms,omitempty" doc:"Give up after this time"`
}

// queryAnswer documents the answer; appendAnswer writes it.
type queryAnswer struct {
	Revision  uint64       `json:"revision" doc:"What the answer knows"`
	Columns   []ColumnInfo `json:"columns"`
	Rows      [][]any      `json:"rows" doc:"Sorted; ints beyond ±(2^53-1) are strings"`
	Truncated bool         `json:"truncated" doc:"True if there are more rows than the limit"`
	Errors    []RuleErrors `json:"errors,omitempty" doc:"Why rows may be missing"`
}

// queryRequest is a decoded body. Parameters stay text until the query's types
// are known.
type queryRequest struct {
	text        string
	parameters  string // the JSON object as sent, "" if absent
	body        string // what parameters is a slice of, for positions
	at          int    // offset of parameters in body
	limit       uint64
	minRevision uint64
	deadlineMS  uint64
}

func (a *API) query(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	src, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	shape, err := shapeOf(r, src)
	if err != nil {
		return err
	}
	request := queryRequest{text: src}
	if shape == shapeJSON {
		if request, err = a.decodeQuery(src); err != nil {
			return err
		}
	}
	if request.limit == 0 {
		request.limit = uint64(a.limits.QueryRows)
	}
	wait := a.limits.QueryDeadline
	if request.deadlineMS > 0 {
		wait = time.Duration(request.deadlineMS) * time.Millisecond
	}
	deadline := time.Now().Add(wait)
	ctx, cancel := context.WithDeadlineCause(r.Context(), deadline, ErrDeadline)
	defer cancel()
	var result QueryResult
	for attempt := 1; ; attempt++ {
		result, err = a.ask(ctx, graph, &request, deadline)
		if !programChanged(err) || attempt == programChangesMax {
			break
		}
	}
	if err != nil && r.Context().Err() == nil && outOfTime(err) {
		return a.queryLate(&request, wait)
	}
	if err != nil {
		return graphError(graph, err)
	}
	writeBody(w, http.StatusOK, "application/json", appendAnswer(nil, &result))
	return nil
}

// outOfTime reports whether a query failed because its deadline passed, whoever
// saw that first.
func outOfTime(err error) bool {
	return errors.Is(err, ErrDeadline) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, engine.ErrCancelled)
}

// queryLate says what to do about a deadline that has passed.
func (a *API) queryLate(request *queryRequest, wait time.Duration) *Problem {
	p := newProblem(http.StatusGatewayTimeout, "deadline", "there was no answer within %v", wait)
	longer := ""
	if wait < a.limits.QueryDeadline {
		longer = fmt.Sprintf(", or give it more time with --deadline (deadline_ms), at most %v",
			a.limits.QueryDeadline)
	}
	if request.minRevision > 0 {
		return p.withHint("it waits for revision %d, which the graph may not have reached: "+
			"ask for one that was answered to a write%s", request.minRevision, longer)
	}
	return p.withHint("bind more arguments, or declare a view and watch it%s", longer)
}

// ask analyses the query by the program that is in force now and asks it.
func (a *API) ask(ctx context.Context, graph string, request *queryRequest,
	deadline time.Time,
) (QueryResult, error) {
	program, err := a.service.Schema(graph)
	if err != nil {
		return QueryResult{}, err
	}
	q, err := parseQuery(program, request.text)
	if err != nil {
		return QueryResult{}, err
	}
	params, err := request.values(q.Parameters)
	if err != nil {
		return QueryResult{}, err
	}
	return a.service.Query(ctx, graph, q, params, QueryOptions{
		Program: program, MaxRows: int(request.limit), MinRevision: request.minRevision,
		Deadline: deadline,
	})
}

func (a *API) decodeQuery(src string) (queryRequest, error) {
	q := queryRequest{body: src}
	known := []string{"query", "parameters", "limit", "min_revision", "deadline_ms"}
	const hint = `send {"query": "?edge($from, Y)", "parameters": {"from": 1}}`
	err := decodeMembers(src, known, hint, func(s *scanner, name string) error {
		if name == "limit" {
			return s.uintMember(name, uint64(a.limits.QueryRows), &q.limit)
		}
		return q.member(s, name, a.limits.QueryDeadline)
	})
	if err == nil && q.text == "" {
		err = jsonProblem(src,
			&scanError{message: `the member "query" is missing or empty`, hint: hint})
	}
	return q, err
}

// member reads a member that every question has.
func (q *queryRequest) member(s *scanner, name string, longest time.Duration) error {
	switch name {
	case "query":
		return s.stringMember(name, &q.text)
	case "min_revision":
		return s.uintMember(name, 1<<63-1, &q.minRevision)
	case "deadline_ms":
		return s.uintMember(name, uint64(longest.Milliseconds()), &q.deadlineMS)
	}
	if s.peek() != '{' {
		return s.failAt(s.pos, `"parameters" must be an object {"NAME": VALUE}, found %s`,
			s.shown())
	}
	q.at = s.pos
	err := s.skip(nestingMax)
	q.parameters = q.body[q.at:s.pos]
	return err
}

// values decodes the parameters by their types. Each must be given once, and no
// other.
func (q *queryRequest) values(columns []analysis.Column) ([]value.Value, error) {
	values := make([]value.Value, len(columns))
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	var wrong rowErrors
	if q.parameters != "" {
		s := scanner{src: q.body, pos: q.at}
		err := s.object("an object", func(name string, at int) error {
			return q.value(&s, name, at, columns, names, values, &wrong)
		})
		if err != nil {
			return nil, jsonProblem(q.body, err)
		}
	}
	if wrong.total == 0 {
		for i, v := range values {
			if v.Kind() == value.Invalid {
				wrong.add(Detail{
					Message: "parameter " + names[i] + ": no value is given; expected " +
						expectedOf(columns[i].Type),
					Hint: "give it with --param " + names[i] + `=VALUE ("parameters": {"` +
						names[i] + `": …})`,
					Location:   "parameters",
					ColumnName: names[i], Expected: expectedOf(columns[i].Type),
				})
			}
		}
	}
	if wrong.total == 0 {
		return values, nil
	}
	p := newProblem(http.StatusBadRequest, "parameters_invalid", "%s", wrong.details[0].Message)
	return nil, p.withErrors(wrong.details, wrong.total)
}

// value reads one member of parameters.
func (q *queryRequest) value(s *scanner, name string, at int, columns []analysis.Column,
	names []string, values []value.Value, wrong *rowErrors,
) error {
	line, column := lineColumn(s.src, at)
	index := -1
	for i := range names {
		if names[i] == name || "$"+names[i] == name {
			index = i
		}
	}
	if index < 0 {
		fallback := "the query has no parameters; write $name where a value belongs"
		if len(names) > 0 {
			fallback = "the query has $" + names[0]
		}
		wrong.add(Detail{
			Message: "the query has no parameter $" + shortened(name), Location: "parameters",
			Hint: didYouMean(name, names, fallback), Line: line, Column: column,
		})
		return s.skip(nestingMax)
	}
	if values[index].Kind() != value.Invalid {
		return s.failAt(at, "parameter %q appears twice", shortened(name))
	}
	v, got, hint, err := s.cell(columns[index])
	if err != nil {
		return err
	}
	if got != "" {
		expected := expectedOf(columns[index].Type)
		wrong.add(Detail{
			Message:  "parameter " + names[index] + ": expected " + expected + ", got " + got,
			Location: "parameters." + names[index], Hint: hint, Line: line, Column: column,
			ColumnName: names[index], Expected: expected, Got: got,
		})
	}
	values[index] = v
	return nil
}

// answerBytesMax is the size from which an answer takes no further row: rows may share
// their texts, and so be much longer than all that the graph holds.
const answerBytesMax = 64 << 20

// appendAnswer appends a result as JSON; cells are spelled as in view frames.
func appendAnswer(dst []byte, r *QueryResult) []byte {
	dst = append(dst, `{"revision":`...)
	dst = strconv.AppendUint(dst, r.Revision, 10)
	dst = append(dst, `,"columns":[`...)
	for i, c := range r.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = strconv.AppendQuote(dst, c.Name) // names are ASCII
		dst = append(dst, `,"type":"`...)
		dst = append(dst, c.Type.String()...)
		dst = append(dst, '"')
		if c.Nullable {
			dst = append(dst, `,"nullable":true`...)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"rows":[`...)
	width, count := len(r.Columns), r.Count
	if width > 0 {
		count = len(r.Rows) / width
	}
	truncated := r.Truncated
	for i := range count {
		if len(dst) >= answerBytesMax {
			truncated = true
			break
		}
		dst = frame.AppendRowStart(dst)
		for _, v := range r.Rows[i*width : (i+1)*width] {
			dst = appendCell(dst, v)
		}
		dst = frame.AppendRowEnd(dst)
	}
	dst = append(dst, `],"truncated":`...)
	dst = strconv.AppendBool(dst, truncated)
	if r.Errors != nil {
		dst = appendErrors(append(dst, `,"errors":`...), *r.Errors)
	}
	return append(dst, "}\n"...)
}

// appendCell appends one value, with the comma before it if it needs one.
func appendCell(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Int:
		return frame.AppendInt(dst, v.Int())
	case value.Float:
		return frame.AppendFloat(dst, v.Float())
	case value.String:
		return frame.AppendString(dst, v.Str())
	case value.Bool:
		return frame.AppendBool(dst, v.Bool())
	case value.Bytes:
		return frame.AppendBytes(dst, v.Str())
	case value.Timestamp:
		return frame.AppendTimestamp(dst, v.Int())
	case value.Null:
		return frame.AppendNull(dst)
	default:
		panic("admin: a result with a value of no kind")
	}
}
