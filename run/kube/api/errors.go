package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// What became of a call is one of five: it was done, somebody else was first
// (IsConflict), it is not allowed (IsRefused), the object is not there or is another
// one (IsGone), or nobody knows (IsTransient), when it may have been done or not. An
// error that is none of these says that the call itself was wrong.

// manyBudgets is what the API server says of a pod with several disruption budgets,
// with the code of a mistake of its own.
const manyBudgets = "more than one PodDisruptionBudget"

// noTurn is what a rate limiter says that cannot let a call through before the
// caller's time is over.
const noTurn = "would exceed context deadline"

// IsConflict reports that somebody else wrote first: the pod is bound already or is
// leaving, the object has another version, or exists.
func IsConflict(err error) bool {
	return (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && !IsGone(err)
}

// IsRefused reports that it is not allowed: by a disruption budget, a quota, rights, or
// because the field must not change. The error's text says which.
func IsRefused(err error) bool {
	if err == nil || IsGone(err) {
		return false
	}
	return budget(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err)
}

// IsGone reports that the object is not there, or that another one has its name.
func IsGone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	status, _ := statusOf(err)
	switch status.Code {
	case http.StatusConflict: // of a precondition
		return strings.Contains(status.Message, "UID in precondition") || strings.Contains(status.Message, "UID in the precondition")
	case http.StatusUnprocessableEntity: // of a patch that says the UID
		return strings.Contains(status.Message, "metadata.uid: ")
	}
	return false
}

// IsTransient reports that the same call may go well in a moment; whether it was done
// this time is not known.
func IsTransient(err error) bool {
	if err == nil || budget(err) {
		return false
	}
	if status, ok := statusOf(err); ok {
		return status.Code >= 500 || status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout
	}
	var wire net.Error
	return errors.As(err, &wire) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err) || strings.Contains(err.Error(), noTurn)
}

// budget reports whether a disruption budget refused: the API server says 429 then, as
// when it is asked too much, and names the cause.
func budget(err error) bool {
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return true
	}
	status, _ := statusOf(err)
	return strings.Contains(status.Message, manyBudgets)
}

func statusOf(err error) (metav1.Status, bool) {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return metav1.Status{}, false
	}
	return s.Status(), true
}
