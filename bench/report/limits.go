package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Limit is what a metric ought to keep to: no more than Max, or no less than Min.
type Limit struct {
	Max *float64 `json:"max,omitempty"`
	Min *float64 `json:"min,omitempty"`
	// Held says whether the metric keeps to it.
	Held bool `json:"held"`
}

// Measured adds a metric that was measured several times: the median of values, and
// their spread. Values are rounded to what a measurement can mean.
func (c *Cell) Measured(name string, values []float64) {
	if len(values) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(values))
	c.Metrics[name] = significant(sorted[(len(sorted)-1)/2])
	if len(sorted) > 1 {
		if c.Spread == nil {
			c.Spread = map[string][2]float64{}
		}
		c.Spread[name] = [2]float64{significant(sorted[0]), significant(sorted[len(sorted)-1])}
	}
}

// AtMost sets a limit to a metric that the cell has.
func (c *Cell) AtMost(name string, limit float64) {
	c.limit(name, Limit{Max: &limit, Held: c.Metrics[name] <= limit})
}

// AtLeast sets a limit from below.
func (c *Cell) AtLeast(name string, limit float64) {
	c.limit(name, Limit{Min: &limit, Held: c.Metrics[name] >= limit})
}

func (c *Cell) limit(name string, l Limit) {
	if _, ok := c.Metrics[name]; !ok {
		c.Problem("the metric %s was not measured", name)
		return
	}
	if c.Limits == nil {
		c.Limits = map[string]Limit{}
	}
	c.Limits[name] = l
}

// significant rounds to four digits.
func significant(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	const digits = 4
	scale := math.Pow10(digits - 1 - int(math.Floor(math.Log10(math.Abs(v)))))
	return math.Round(v*scale) / scale
}

// writeList writes a cell after the other, a metric to a line: its value, its spread
// and its limit.
func (r *Report) writeList(w io.Writer) error {
	r.writeHead(w)
	held, all, method := 0, 0, ""
	for _, c := range r.Cells {
		fmt.Fprintf(w, "%s", c.Name)
		if len(c.Params) > 0 {
			fmt.Fprintf(w, "  %s", formatParams(c.Params))
		}
		fmt.Fprintln(w)
		if c.Method != "" && c.Method != method { // neighbours often have the same
			method = c.Method
			fmt.Fprintf(w, "  %s\n", method)
		}
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
			line := "  " + name + "\t" + formatMetric(c.Metrics[name]) + "\t"
			if s, ok := c.Spread[name]; ok {
				line += formatMetric(s[0]) + " to " + formatMetric(s[1])
			}
			if l, ok := c.Limits[name]; ok {
				all++
				if l.Held {
					held++
				}
				line += "\t" + l.String()
			}
			fmt.Fprintln(tw, line)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if all > 0 {
		fmt.Fprintf(w, "%d of %d limits held\n", held, all)
	}
	r.writeProblems(w)
	return nil
}

// String spells the limit and whether it was kept to.
func (l Limit) String() string {
	text := "no limit"
	switch {
	case l.Max != nil:
		text = "at most " + formatMetric(*l.Max)
	case l.Min != nil:
		text = "at least " + formatMetric(*l.Min)
	}
	if l.Held {
		return text + ": held"
	}
	return text + ": MISSED"
}

func formatMetric(v float64) string { return strconv.FormatFloat(v, 'f', decimals(v), 64) }
