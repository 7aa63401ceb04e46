package main

import (
	"fmt"
	"strings"
)

// words are the commands of other systems, each with what it is here. docs/coming-from has a page for
// each system, and a test holds the two together.
var words = map[string]map[string]string{
	"slurm": {"sbatch": "muster submit --from auto", "squeue": "muster ls", "srun": "muster run --", "salloc": "muster run --", "scancel": "muster cancel", "sinfo": "muster nodes",
		"scontrol show": "muster show", "scontrol hold": "muster hold", "scontrol release": "muster release", "scontrol requeue": "muster requeue", "scontrol update": "muster drain",
		"scontrol create": "muster maintain", "scontrol delete": "muster maintain", "sacct": "muster ls --all", "sshare": "muster share", "sprio": "muster why", "sacctmgr": "muster queues", "sdiag": "muster status"},
	"kueue": {"kubectl apply": "muster submit --from auto", "kubectl get": "muster ls", "kubectl describe": "muster show", "kubectl logs": "muster logs", "kubectl delete": "muster cancel",
		"kubectl cordon": "muster cordon", "kubectl drain": "muster drain", "kubectl uncordon": "muster uncordon", "kueuectl list": "muster queues", "kueuectl stop": "muster hold", "kueuectl resume": "muster release"},
	"volcano": {"vcctl job run": "muster submit --from auto", "vcctl job list": "muster ls", "vcctl job view": "muster show", "vcctl job suspend": "muster hold",
		"vcctl job resume": "muster release", "vcctl job delete": "muster cancel", "vcctl queue list": "muster queues", "vcctl queue create": "muster queues import"},
	"skypilot": {"sky launch": "muster submit --from auto", "sky exec": "muster run --", "sky jobs queue": "muster ls", "sky queue": "muster ls", "sky status": "muster status",
		"sky logs": "muster logs", "sky cancel": "muster cancel", "sky jobs cancel": "muster cancel", "sky down": "muster cancel"},
	"ray": {"ray job submit": "muster submit --", "ray job list": "muster ls", "ray job status": "muster show", "ray job logs": "muster logs", "ray job stop": "muster cancel", "ray status": "muster status", "ray start": "muster up"},
	"determined": {"det experiment create": "muster submit --from auto", "det experiment list": "muster ls", "det experiment describe": "muster show", "det experiment pause": "muster hold",
		"det experiment activate": "muster release", "det experiment kill": "muster cancel", "det trial logs": "muster logs", "det slot list": "muster nodes", "det agent list": "muster nodes", "det job list": "muster ls", "det cmd run": "muster run --"},
}

// theirs says what the command of another system is here, of as many words as one has; "" of others.
func theirs(args []string) string {
	for n := min(len(args), 3); n > 0; n-- {
		for system, of := range words {
			if ours, there := of[strings.Join(args[:n], " ")]; there {
				return fmt.Sprintf("that is %s; see docs/coming-from/%s.md", ours, system)
			}
		}
	}
	for system, of := range words {
		for word := range of {
			if first, _, more := strings.Cut(word, " "); more && first == args[0] {
				return fmt.Sprintf("docs/coming-from/%s.md says what it is here", system)
			}
		}
	}
	return ""
}
