// Package scenario sets the scenes on a lab that acceptance tests check one by one, while the demo shows them to people.
//
// A scene is a namespace with the workloads of an incident. Beside it runs the real controller program, with exactly the
// rights of the service account in deploy/manifests. What pods loaded is read from the lab's record, which shares no code
// with Tidemark; what Tidemark says is read from its command line.
package scenario
