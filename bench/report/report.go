// Package report is the one form in which every bench of ours states what it
// measured: the schema heddle-bench/1, as JSON for machines and as a table for
// people. It holds figures and judges none; a bench says itself whether a cell
// is in order.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Schema names the form of the JSON. A change that an old reader would
// misunderstand gets a new name.
const Schema = "heddle-bench/1"

// ErrNotOK is returned by Report.Write, after everything is written, when a
// cell is not in order.
var ErrNotOK = errors.New("not every cell of the bench is in order")

// Report is what one run of one bench found. A bench whose cells have little in
// common has one with List.
type Report struct {
	Schema  string         `json:"schema"` // always the constant Schema
	Name    string         `json:"name"`   // of the bench, such as "floor"
	Commit  string         `json:"commit"` // of the code measured; "unknown" if it cannot be told
	Machine Machine        `json:"machine"`
	Params  map[string]any `json:"params"` // what the whole run was asked to do
	Cells   []Cell         `json:"cells"`

	// List has the text name one metric in a line, cell after cell, with spread and
	// limit, instead of a column for each cell.
	List bool `json:"-"`
}

// Cell is one measurement under one set of parameters.
type Cell struct {
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	// Metrics are named with their unit, such as "ack_us_p50".
	Metrics map[string]float64 `json:"metrics"`
	// Method says in a sentence what was measured and how, where the name does not.
	Method string `json:"method,omitempty"`
	// Spread has the least and the greatest value of those metrics that were measured
	// several times in this process; the metric itself is their median.
	Spread map[string][2]float64 `json:"spread,omitempty"`
	// Limits are what some metrics ought to keep to. They say nothing about OK.
	Limits map[string]Limit `json:"limits,omitempty"`
	// OK says that the cell is complete and that all it checked held; Problems
	// name what did not, for people.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}

// problemsMax bounds the problems of one cell: a broken run finds thousands of
// the same.
const problemsMax = 20

// New returns an empty report of the named bench on this machine.
func New(name string, params map[string]any) *Report {
	return &Report{
		Schema: Schema, Name: name, Commit: commit(), Machine: thisMachine(), Params: params,
		Cells: []Cell{},
	}
}

// NewCell returns an empty cell, in order until Problem is called.
func NewCell(name string, params map[string]any) Cell {
	return Cell{
		Name: name, Params: params, Metrics: map[string]float64{}, OK: true, Problems: []string{},
	}
}

// Problem says that the cell is not in order, and why. Beyond 20 problems only
// the fact remains.
func (c *Cell) Problem(format string, args ...any) {
	c.OK = false
	if len(c.Problems) < problemsMax {
		c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
	}
}

// Write writes the report as JSON or as a table. It returns ErrNotOK if a cell
// is not in order, so that the command can exit accordingly.
func (r *Report) Write(w io.Writer, asJSON bool) error {
	var err error
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else if r.List {
		err = r.writeList(w)
	} else {
		err = r.writeTable(w)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if slices.ContainsFunc(r.Cells, func(c Cell) bool { return !c.OK }) {
		return ErrNotOK
	}
	return nil
}

// writeTable gives each cell a column and each parameter and metric a row: a
// bench has more metrics than cells.
func (r *Report) writeTable(w io.Writer) error {
	r.writeHead(w)
	params, metrics := map[string]bool{}, map[string]bool{}
	for _, c := range r.Cells {
		for name := range c.Params {
			params[name] = true
		}
		for name := range c.Metrics {
			metrics[name] = true
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value func(c Cell) string) {
		fmt.Fprintf(tw, "%s\t", name)
		for _, c := range r.Cells {
			fmt.Fprintf(tw, "%s\t", value(c))
		}
		fmt.Fprintln(tw)
	}
	row("", func(c Cell) string { return c.Name })
	for _, name := range slices.Sorted(maps.Keys(params)) {
		row(name, func(c Cell) string { return formatParam(c.Params[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		row(name, func(c Cell) string {
			v, ok := c.Metrics[name]
			if !ok {
				return "-"
			}
			return formatMetric(v)
		})
	}
	row("ok", func(c Cell) string { return strconv.FormatBool(c.OK) })
	if err := tw.Flush(); err != nil {
		return err
	}
	r.writeProblems(w)
	return nil
}

func (r *Report) writeHead(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%s at %s on %s (%d cores), %s, %s\n",
		r.Name, r.Commit, m.CPU, m.Cores, m.Kernel, m.Go)
	fmt.Fprintf(w, "%s\n\n", formatParams(r.Params))
}

func (r *Report) writeProblems(w io.Writer) {
	for _, c := range r.Cells {
		for _, problem := range c.Problems {
			fmt.Fprintf(w, "%s: %s\n", c.Name, problem)
		}
	}
}

func formatParams(params map[string]any) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		words = append(words, name+"="+formatParam(params[name]))
	}
	return strings.Join(words, " ")
}

func formatParam(v any) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(v)
}

// decimals keeps about three digits that mean something.
func decimals(v float64) int {
	switch {
	case v == float64(int64(v)) || v >= 100 || v <= -100:
		return 0
	case v >= 10 || v <= -10:
		return 1
	default:
		return 3
	}
}
