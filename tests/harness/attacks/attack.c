/* Attacks by system call, loaded into a confined process. Each returns 0 when it succeeded, else errno. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct target {
    int parent;          /* process to harm: the harness, or another of the same user */
    int port;            /* a TCP and UDP server on 127.0.0.1 */
    const char* name;    /* abstract name of a local server, without the leading zero */
    const char* secret;  /* a file outside */
    const char* mine;    /* a folder that may be written */
};
typedef const struct target T;
#define TRY(call) (errno = 0, (call) < 0 ? (errno ? errno : EPERM) : 0)

static int connect_ip(int family, int port, int type) {
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int s = socket(family, type, 0);
    if (s < 0) return errno;
    if (type == SOCK_RAW) return 0;
    void* a = family == AF_INET ? (void*)&a4 : (void*)&a6;
    return TRY(connect(s, a, family == AF_INET ? sizeof a4 : sizeof a6));
}
static int tcp(T* t) { return connect_ip(AF_INET, t->port, SOCK_STREAM); }
static int tcp6(T* t) { return connect_ip(AF_INET6, t->port, SOCK_STREAM); }
static int udp(T* t) { return connect_ip(AF_INET, t->port, SOCK_DGRAM); }
static int raw(T* t) { return connect_ip(AF_INET, t->port, SOCK_RAW); }
static int tcp_listen(T* t) {
    (void)t;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    return s < 0 ? errno : TRY(listen(s, 1));
}
static int netlink(T* t) { (void)t; return TRY(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int packet(T* t) { (void)t; return TRY(socket(AF_PACKET, SOCK_RAW, 0)); }
static int vsock(T* t) { (void)t; return TRY(socket(40, SOCK_STREAM, 0)); }
static int unix_abstract(T* t) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", t->name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    return s < 0 ? errno : TRY(connect(s, (void*)&a, sizeof(sa_family_t) + 1 + strlen(t->name)));
}
static int read_memory(T* t) {
    char b[8];
    struct iovec l = {b, 8}, r = {(void*)read_memory, 8};
    return TRY(process_vm_readv(t->parent, &l, 1, &r, 1, 0));
}
static int write_memory(T* t) {
    char b[8];
    struct iovec l = {b, 8}, r = {(void*)write_memory, 8};
    return TRY(process_vm_writev(t->parent, &l, 1, &r, 1, 0));
}
static int trace(T* t) { return TRY(ptrace(PTRACE_SEIZE, t->parent, 0, 0)); }
static int signal_parent(T* t) { return TRY(kill(t->parent, 0)); }
static int signal_thread(T* t) { return TRY(syscall(SYS_tgkill, t->parent, t->parent, 0)); }
static int signal_handle(T* t) {
    int p = syscall(SYS_pidfd_open, t->parent, 0);
    return p < 0 ? errno : TRY(syscall(SYS_pidfd_send_signal, p, 0, 0, 0));
}
static int steal_descriptor(T* t) {
    int p = syscall(SYS_pidfd_open, t->parent, 0);
    return p < 0 ? errno : TRY(syscall(SYS_pidfd_getfd, p, 0, 0));
}
/* The victim is stopped: whether this woke it is looked up outside. Harmless where it works. */
static int wake_everybody(T* t) { (void)t; kill(-1, SIGCONT); return ECHILD; }
static int limit_parent(T* t) {
    struct rlimit64 { uint64_t a, b; } l = {64, 64};
    return TRY(syscall(SYS_prlimit64, t->parent, RLIMIT_NOFILE, &l, 0));
}
static int slow_parent(T* t) { return TRY(setpriority(PRIO_PROCESS, t->parent, 19)); }
static int mount_tmpfs(T* t) { return TRY(mount("none", t->mine, "tmpfs", 0, 0)); }
static int bind_root(T* t) { return TRY(mount("/", t->mine, 0, MS_BIND | MS_REC, 0)); }
static int unmount(T* t) {
    int e = TRY(umount2(t->mine, MNT_DETACH)); /* no mount point: harmless, and EINVAL says that it was allowed */
    return e == EINVAL ? 0 : e;
}
static int new_mount_api(T* t) { (void)t; return TRY(syscall(SYS_open_tree, AT_FDCWD, "/", 1)); }
static int unshare_user(T* t) { (void)t; return TRY(unshare(CLONE_NEWUSER)); }
static int unshare_mount(T* t) { (void)t; return TRY(unshare(CLONE_NEWNS)); }
static int clone_namespace(T* t) {
    (void)t;
    long p = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (p == 0) _exit(0);
    return TRY(p);
}
static int join_namespace(T* t) {
    char p[64];
    snprintf(p, sizeof p, "/proc/%d/ns/mnt", t->parent);
    int f = open(p, O_RDONLY);
    return f < 0 ? TRY(setns(0, 0)) : TRY(setns(f, 0));
}
static int change_root(T* t) { return TRY(chroot(t->mine)); }
static int pivot(T* t) { return TRY(syscall(SYS_pivot_root, t->mine, t->mine)); }
static int kernel_keys(T* t) { (void)t; return TRY(syscall(SYS_keyctl, 0, -3, 1)); }
static int add_kernel_key(T* t) { (void)t; return TRY(syscall(SYS_add_key, "user", "k", "v", 1, -3)); }
static int ebpf(T* t) {
    (void)t;
    union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return TRY(syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a));
}
static int perf(T* t) {
    (void)t;
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .exclude_kernel = 1};
    return TRY(syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
}
static int fault_handler(T* t) { (void)t; return TRY(syscall(SYS_userfaultfd, 1)); }
static int ring(T* t) {
    (void)t;
    char p[256] = {0};
    return TRY(syscall(SYS_io_uring_setup, 4, p));
}
static int open_by_handle(T* t) { (void)t; char h[128] = {8}; return TRY(syscall(SYS_open_by_handle_at, 0, h, 0)); }
static int physical_memory(T* t) { (void)t; return TRY(open("/dev/mem", O_RDWR)); }
static int terminal(T* t) {
    (void)t;
    int f = open("/dev/tty", O_RDWR);
    return f < 0 ? errno : TRY(ioctl(f, TIOCSTI, "x"));
}
static int terminal_inherited(T* t) { (void)t; return TRY(ioctl(2, TIOCSTI, "x")); }
static int become_root(T* t) {
    (void)t;
    if (geteuid() == 0) return prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 ? 0 : EPERM; /* root in name: any power? */
    return TRY(setresuid(0, 0, 0));
}
static int regain_privileges(T* t) { (void)t; return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0; }
static int module(T* t) { (void)t; return TRY(syscall(SYS_finit_module, 0, "", 0)); }
static int halt(T* t) { (void)t; return TRY(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0)); }
static int host_name(T* t) { (void)t; return TRY(sethostname("x", 1)); }
static int shared_memory(T* t) { (void)t; return TRY(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)); }
static int semaphores(T* t) { (void)t; return TRY(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600)); }
static int messages(T* t) { (void)t; return TRY(msgget(IPC_PRIVATE, IPC_CREAT | 0600)); }
static int change_mode(T* t) { return TRY(chmod(t->secret, 0777)); }
static int change_owner(T* t) { return TRY(chown(t->secret, geteuid(), -1)); }
static int change_time(T* t) { return TRY(utimensat(AT_FDCWD, t->secret, 0, 0)); }
static int change_attribute(T* t) { return TRY(setxattr(t->secret, "user.x", "y", 1, 0)); }
static int truncate_outside(T* t) { return TRY(truncate(t->secret, 0)); }
/* A program from memory stays behind the same walls: it is asked to read what is outside. */
static int run_from_memory(T* t) {
    int f = memfd_create("program", 0), from = open("/bin/cat", O_RDONLY), status = 0;
    if (f < 0 || from < 0) return errno;
    char b[4096];
    for (ssize_t n; (n = read(from, b, sizeof b)) > 0;)
        if (write(f, b, n) != n) return errno;
    pid_t p = fork();
    if (p < 0) return errno;
    if (p == 0) {
        char* args[] = {"cat", (char*)t->secret, 0};
        close(1); close(2);
        fexecve(f, args, (char*[]){0});
        _exit(1);
    }
    waitpid(p, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EACCES;
}

static const struct { const char* name; int (*run)(T*); } attacks[] = {
    {"connect TCP", tcp}, {"connect TCP over IPv6", tcp6}, {"connect UDP", udp}, {"raw socket", raw},
    {"listen on TCP", tcp_listen}, {"netlink socket", netlink}, {"packet socket", packet}, {"vsock socket", vsock},
    {"connect an abstract local socket", unix_abstract}, {"process_vm_readv", read_memory},
    {"process_vm_writev", write_memory}, {"ptrace", trace}, {"kill the harness", signal_parent},
    {"tgkill the harness", signal_thread}, {"pidfd_send_signal", signal_handle}, {"pidfd_getfd", steal_descriptor},
    {"kill(-1)", wake_everybody}, {"prlimit of the harness", limit_parent}, {"setpriority of the harness", slow_parent},
    {"mount", mount_tmpfs}, {"bind mount of the root", bind_root}, {"umount", unmount}, {"open_tree", new_mount_api},
    {"unshare user", unshare_user}, {"unshare mount", unshare_mount}, {"clone with a namespace", clone_namespace},
    {"setns", join_namespace}, {"chroot", change_root}, {"pivot_root", pivot}, {"keyctl", kernel_keys},
    {"add_key", add_kernel_key}, {"bpf", ebpf}, {"perf_event_open", perf}, {"userfaultfd", fault_handler},
    {"io_uring", ring}, {"open_by_handle_at", open_by_handle}, {"/dev/mem", physical_memory},
    {"TIOCSTI on the terminal", terminal}, {"TIOCSTI on standard error", terminal_inherited},
    {"become root", become_root}, {"privileges by setuid programs", regain_privileges}, {"load a kernel module", module},
    {"reboot", halt}, {"host name", host_name}, {"System V shared memory", shared_memory},
    {"System V semaphores", semaphores}, {"System V messages", messages}, {"chmod outside", change_mode},
    {"chown outside", change_owner}, {"utimes outside", change_time}, {"setxattr outside", change_attribute},
    {"truncate outside", truncate_outside}, {"program from memory reads outside", run_from_memory},
};

int attack_count(void) { return sizeof attacks / sizeof *attacks; }
const char* attack_name(int number) { return attacks[number].name; }
int attack_run(int number, T* target) { return attacks[number].run(target); }
