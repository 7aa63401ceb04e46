package budget_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/budget"
)

// Who waits spends nothing; who computes comes to the end of the budget.
func TestWithin(t *testing.T) {
	ctx, cancel := budget.Within(t.Context(), 200*time.Millisecond)
	defer cancel()
	time.Sleep(300 * time.Millisecond)
	if ctx.Err() != nil {
		t.Fatalf("who waits has spent it: %v", context.Cause(ctx))
	}
	before := budget.Used()
	for ctx.Err() == nil {
		if budget.Used()-before > 5*time.Second {
			t.Fatal("it never ends")
		}
	}
	if used := budget.Used() - before; !errors.Is(context.Cause(ctx), budget.ErrSpent) || used > time.Second {
		t.Errorf("after %v: %v", used, context.Cause(ctx))
	}
	ended, cancel := budget.Within(t.Context(), time.Hour)
	if cancel(); !errors.Is(context.Cause(ended), context.Canceled) {
		t.Errorf("given up: %v", context.Cause(ended))
	}
}
