package journal

import "context"

// Verify reads a graph's whole log and all its facts, holding each record
// against its checksum and its link and the facts against the head's count. It
// returns the first *DamageError, or nil and the head. It takes as long as
// reading everything does.
func Verify(ctx context.Context, j Journal, graph string) (Position, error) {
	for _, err := range j.Replay(ctx, graph, 0) {
		if err != nil {
			return Position{}, err
		}
	}
	if _, err := j.State(ctx, graph, func(Mutation) error { return nil }); err != nil {
		return Position{}, err
	}
	return j.Head(ctx, graph)
}
