package naive

import (
	"math/big"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// groups collects the bindings of an aggregating clause by group.
type groups struct {
	rule    *analysis.Rule
	byKey   map[string]*group
	ordered []*group
}

// group has the values of each aggregated column, one for each binding, nulls left
// out.
type group struct {
	head   []value.Value // at the columns of the group
	values [][]value.Value
}

func newGroups(r *analysis.Rule) *groups { return &groups{rule: r, byKey: map[string]*group{}} }

func (g *groups) add(binding []value.Value) {
	head := make([]value.Value, len(g.rule.Head.Terms))
	for i, t := range g.rule.Head.Terms {
		if g.rule.Aggregates[i].Kind == analysis.NoAggregate {
			head[i] = evaluate(t, binding)
		}
	}
	k := spelling(head)
	at := g.byKey[k]
	if at == nil {
		at = &group{head: head, values: make([][]value.Value, len(head))}
		g.byKey[k] = at
		g.ordered = append(g.ordered, at)
	}
	for i, a := range g.rule.Aggregates {
		if a.Kind == analysis.NoAggregate {
			continue
		}
		if v := evaluate(a.Arg, binding); !v.IsNull() {
			at.values[i] = append(at.values[i], v)
		}
	}
}

// rows returns the rows of all groups, and calls failed for each group whose
// aggregate cannot be represented.
func (g *groups) rows(failed func()) [][]value.Value {
	var rows [][]value.Value
	for _, at := range g.ordered {
		// Most aggregates have one result. The others stand alone, so that there is one
		// column to vary.
		several, ok := -1, true
		var results []value.Value
		head := slices.Clone(at.head)
		for i, a := range g.rule.Aggregates {
			switch a.Kind {
			case analysis.NoAggregate:
			case analysis.TopK, analysis.TopKThreshold, analysis.WithinRadius:
				several, results = i, choose(a, at.values[i])
			default:
				var fine bool
				head[i], fine = reduce(a.Kind, at.values[i])
				ok = ok && fine
			}
		}
		switch {
		case !ok:
			failed()
		case several < 0:
			rows = append(rows, head)
		default:
			for _, v := range results {
				row := slices.Clone(head)
				row[several] = v
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// reduce returns the one value of an aggregate, and false if there is none that its
// column holds. Of no values, there is neither sum nor average nor extreme: null.
func reduce(kind analysis.AggregateKind, values []value.Value) (value.Value, bool) {
	switch kind {
	case analysis.Count:
		return value.OfInt(int64(len(values))), true
	case analysis.CountDistinct:
		return value.OfInt(int64(len(distinct(values)))), true
	}
	if len(values) == 0 {
		return value.OfNull(), true
	}
	switch kind {
	case analysis.Min:
		return slices.MinFunc(values, value.Compare), true
	case analysis.Max:
		return slices.MaxFunc(values, value.Compare), true
	}
	sum := new(big.Rat)
	for _, v := range values {
		number := new(big.Rat)
		if v.Kind() == value.Int {
			number.SetInt64(v.Int())
		} else {
			number.SetFloat64(v.Float())
		}
		sum.Add(sum, number)
	}
	if kind == analysis.Avg {
		sum.Quo(sum, new(big.Rat).SetInt64(int64(len(values))))
	} else if values[0].Kind() == value.Int {
		return value.OfInt(sum.Num().Int64()), sum.Num().IsInt64()
	}
	rounded, _ := sum.Float64()
	return value.OfFloat(rounded)
}

// choose returns the values that an aggregate with several results takes.
func choose(a analysis.Aggregate, values []value.Value) []value.Value {
	order := func(x, y value.Value) int {
		if a.Descending {
			return value.Compare(y, x)
		}
		return value.Compare(x, y)
	}
	values = distinct(values)
	if a.Kind != analysis.TopK {
		values = slices.DeleteFunc(values, func(v value.Value) bool {
			return order(v, a.Threshold) > 0
		})
	}
	slices.SortFunc(values, order)
	if a.Kind != analysis.WithinRadius && int64(len(values)) > a.K {
		values = values[:a.K]
	}
	return values
}

func distinct(values []value.Value) []value.Value {
	values = slices.SortedFunc(slices.Values(values), value.Compare)
	return slices.Compact(values)
}
