package lite

import (
	"context"
	"sync"
	"time"
)

// pace bounds how fast a session does what its peer asks for: a burst, then a
// rate. Nothing is refused; who asks faster waits, and then so do its streams in
// the transport. Without it one peer's flood would keep so many goroutines
// running that every other session waits for its turn.
type pace struct {
	burst  time.Duration // the time in which the rate brings a burst
	period time.Duration // of one request

	mu   sync.Mutex
	next time.Time // when all that was taken is paid for, without the burst
}

// newPace allows burst requests at once and rate a second.
func newPace(burst, rate int) *pace {
	period := time.Second / time.Duration(rate)
	return &pace{burst: time.Duration(burst) * period, period: period}
}

// take counts n requests and returns how long to wait for their turn.
func (p *pace) take(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(n) * p.period)
	return p.next.Sub(now) - p.burst
}

// wait counts n requests and waits for their turn, or for the end of ctx.
func (p *pace) wait(ctx context.Context, n int) error {
	d := p.take(time.Now(), n)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
