package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// getShadows says what strategies would have done. With ?regret=1 the history is
// replayed under each, which takes as long as the history is, and the right to operate.
func (ah *ahead) getShadows(w http.ResponseWriter, r *http.Request) error {
	replay, err := door.Number(r, "regret", 0, 0, 1)
	if err != nil {
		return err
	}
	if replay == 1 && !access.From(r.Context()).Operates() {
		return door.Refuse(http.StatusForbidden, "to replay the history under each shadow takes as long as the history is, and the right to operate: ask an operator")
	}
	out, err := ah.listShadows(r)
	if err != nil || replay == 0 {
		if err != nil {
			return err
		}
		return door.Answer(w, out)
	}
	regrets, calibration, err := ah.shadows.Regrets(r.Context())
	switch {
	case errors.Is(err, shadow.ErrBusy):
		return &door.Failure{Status: http.StatusTooManyRequests, Retry: 10, Message: err.Error()}
	case err != nil:
		return err
	}
	out.Calibration = calibration
	for i := range out.Shadows {
		if g, there := regrets[out.Shadows[i].Name]; there {
			out.Shadows[i].Regret = &g
		}
	}
	return door.Answer(w, out)
}

func (ah *ahead) listShadows(r *http.Request) (out view.Shadows, err error) {
	err = ah.reader.ask(r.Context(), func(plan.View) { out.Active = ah.plane.Strategy() })
	out.Shadows = ah.shadows.List()
	return out, err
}

// changeShadows adds a shadow or removes one.
func (ah *ahead) changeShadows(w http.ResponseWriter, r *http.Request) error {
	var ask view.ShadowRequest
	if err := door.Receive(w, r, &ask); err != nil {
		return err
	}
	var err error
	switch {
	case ask.Add != "" && ask.Remove == "":
		// It is read as a text and never as the name of a file of this machine.
		c, bad := catalogue.Parse("strategy", ask.Add)
		if bad != nil {
			return door.Refuse(http.StatusBadRequest, bad.Error())
		}
		access.CallOf(r.Context()).Note = fmt.Sprintf("shadow %s added", c.Name)
		err = ah.shadows.Add(c, unit.Time(time.Now().UnixMicro()))
	case ask.Remove != "" && ask.Add == "":
		access.CallOf(r.Context()).Note = fmt.Sprintf("shadow %s removed", ask.Remove)
		err = ah.shadows.Remove(ask.Remove)
	default:
		return door.Refuse(http.StatusBadRequest, `expected {"add": STRATEGY} or {"remove": NAME}`)
	}
	var refused shadow.Refused
	if errors.As(err, &refused) {
		return door.Refuse(http.StatusConflict, refused.Error())
	}
	if err != nil {
		return err
	}
	out, err := ah.listShadows(r)
	if err != nil {
		return err
	}
	return door.Answer(w, out)
}
