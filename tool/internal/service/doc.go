// Package service answers what the page of package view asks: [Service] has the questions, as bytes in and out, whatever
// carries them, and [Server] carries them over HTTP on the loopback address. An [Engine] does the work.
package service
