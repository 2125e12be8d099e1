// Package couriers is the example that `heddle demo` shows: parcels that wander
// between couriers, and a view of each courier's own. The program can be applied
// to any server with `heddle apply GRAPH couriers.heddle`.
package couriers

import _ "embed"

// Program is the example's program with its seed facts.
//
//go:embed couriers.heddle
var Program string

// What the program seeds: couriers and parcels are numbered from 1.
const (
	Couriers = 12
	Parcels  = 60
)

// Names in the program.
const (
	View     = "tour_of"
	Relation = "carries" // (courier, parcel): what the demo's writer and form change
)
