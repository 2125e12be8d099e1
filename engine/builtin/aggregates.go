package builtin

// AggregateSpec documents an aggregate. Aggregates are evaluated by package dataflow,
// row by row.
type AggregateSpec struct {
	Name string
	Form string // as it stands in a head
	Doc  string
}

// Aggregates returns all aggregates in the order of the reference page.
func Aggregates() []AggregateSpec { return aggregates }

var aggregates = []AggregateSpec{
	{
		"count", "count<X>",
		"An int: the number of bindings in which `X` is not null. `count<1>` counts all.",
	},
	{"count_distinct", "count_distinct<X>", "An int: the number of different values of `X`."},
	{
		"sum", "sum<X>",
		"The sum of ints, an int, or of floats, a float. It is exact, whatever the order in " +
			"which rows came and went: a sum of ints overflows only if the result does, and a " +
			"sum of floats is rounded once.",
	},
	{"avg", "avg<X>", "The sum of ints or floats divided by their number, a float."},
	{"min", "min<X>", "The smallest value of `X`, of any type."},
	{"max", "max<X>", "The largest value of `X`, of any type."},
	{
		"top_k", "top_k<K, V>, top_k<K, V, desc>",
		"The first `K` of the different values of `V`, from the smallest on, with `desc` from " +
			"the largest on: one row each.",
	},
	{
		"top_k_threshold", "top_k_threshold<K, T, V>, top_k_threshold<K, T, V, desc>",
		"The first `K` of the different values of `V` that are at most `T`, with `desc` at least " +
			"`T`: one row each.",
	},
	{
		"within_radius", "within_radius<R, D>",
		"All different values of `D` that are at most `R`: one row each.",
	},
}
