package dataflow

// Planted is a fault that a test can plant with the build tag planted; without the tag
// the compiler sees that there is none.
type Planted uint8

// The faults, each one that somebody might make.
const (
	PlantedNone Planted = iota
	// A rule that reads a relation both with and without a negation meets the row that
	// changes on both sides.
	PlantedReadTwice
	// A candidate for a recursive relation enters though what derived it has gone in
	// the same commit.
	PlantedStaleCandidate
	// A fact that comes and goes within one transaction stays.
	PlantedComesAndGoes
	// A row of a recursive relation may hold itself up.
	PlantedUnfounded
	// A group that has lost its last binding keeps its row.
	PlantedEmptyGroup
	// A window does not fill up behind a row that leaves it.
	PlantedWindow
	plantedEnd
)

// AllPlanted returns all faults.
func AllPlanted() []Planted {
	var all []Planted
	for p := PlantedNone + 1; p < plantedEnd; p++ {
		all = append(all, p)
	}
	return all
}
