package server

import (
	"fmt"
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
)

// tenantOf is the tenant of a job, for Identity.Sees and its like.
func tenantOf(info plane.JobInfo) string {
	if info.Spec == nil {
		return ""
	}
	return info.Spec.Tenant
}

func ownerOf(info plane.JobInfo) string {
	if info.Spec == nil {
		return ""
	}
	return info.Spec.User
}

func sees(id *access.Identity, info plane.JobInfo) bool {
	return id.Sees(tenantOf(info), ownerOf(info))
}

// missing is what is said of a job that is not there, or not for the identity: the
// same, or its name could be found out. The audit log is told which it is.
func missing(ref string, id *access.Identity, there bool) error {
	f := &door.Failure{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no job %q: muster ls --all lists them", ref)}
	if there {
		f.Denied = fmt.Sprintf("job %s is not of a tenant that %s sees", ref, id.Name)
	}
	return f
}
