// Turns a fatal signal into a report that names the kernel and the CUDA thread.
#pragma once

namespace kw {
class Grid;
class Memory;

// What the signal handler looks at. `kernel` changes with every launch.
struct CrashContext {
  const Memory* memory = nullptr;
  const Grid* grid = nullptr;
  const char* kernel = "";
};

CrashContext& crash_context();

// Installs the handlers, for the whole process.
void catch_crashes();
// Handlers need a stack of their own on every OS thread: a kernel may have used up its stack.
void catch_crashes_on_this_thread();
}  // namespace kw
