// Package proof pulls the contract between engine and strategies in every direction:
// eight awkward strategies, each a page long and written against schedule.Scheduler
// alone, run small scenarios of lost nodes, failed starts, late stops and switches of
// strategy, with the checker on and a restart after every event. What bent is written
// down in docs/decisions.
//
// Everything here is test code. The strategies are reductions ("after" a published
// system) that exercise the contract; they are not for use.
package proof
