package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/web"
)

// console serves the files of the console under /console/. They are the same for
// everybody and say nothing of the cluster, so they take no right: a browser asks for
// them before it can show a token. What the console then asks of the API does.
func console() http.Handler { return http.StripPrefix("/console", web.Handler()) }
