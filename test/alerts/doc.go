// Package alerts holds the alerts of deploy/alerts with the dashboard of deploy/dashboards to what the controller exports.
//
// It is a module of its own, so that Prometheus' rule tester and parser stay out of the product's.
package alerts
