// Command demo plays the incidents that Tidemark exists for on a real Kubernetes: first as they happened, then with Tidemark.
//
// Every figure that it prints is read from the lab's record of what containers were given, or from what the API says of
// pods, at the time it is printed. It ends with one line for each incident, and with exit status 0 only if every outcome is
// the one that the incident stands for.
package main
