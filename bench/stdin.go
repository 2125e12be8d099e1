package bench

import (
	"context"
	"io"
)

// untilEOF returns a context that also ends when in does: a server that a bench
// started must not outlive the bench, however that ended. The reader goroutine
// lives as long as in.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx, cancel
}
