//go:build planted

package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/dataflow"
)

// TestPlanted plants one fault after the other: TestOracle would find each.
func TestPlanted(t *testing.T) {
	defer dataflow.Plant(dataflow.PlantedNone)
	for _, fault := range dataflow.AllPlanted() {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			dataflow.Plant(fault)
			first := rand.Uint64()>>1 + 1
			var h histogram
			err := many(first, *oracleMany, &h)
			if err == nil {
				t.Fatalf("not found in %d programs from seed %d on", *oracleMany, first)
			}
			t.Logf("after %d programs: %v", h.programs+1, err)
		})
	}
}
