/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/target.h"
#include "proto/vm.h"

#include <pwd.h>

enum { COMMAND_SHOWN = 100 /* columns, as in the format below */ };

#ifdef COMMAND_IS_STATIC
/*
 * Reads /etc/passwd only. The other sources of names are libraries, and the system's may belong to
 * another libc than the one that is linked in.
 */
static struct passwd *find_user(uid_t uid)
{
    struct passwd *p;
    FILE *file = fopen("/etc/passwd", "re");
    do
        p = file ? fgetpwent(file) : NULL;
    while (p && p->pw_uid != uid);
    if (file)
        fclose(file);
    return p;
}
#else
static struct passwd *find_user(uid_t uid)
{
    return getpwuid(uid);
}
#endif

static const char *user_name(uid_t uid, char text[32])
{
    struct passwd *p = find_user(uid);
    snprintf(text, 32, "%u", uid);
    return p ? p->pw_name : text;
}

/* Prints a duration such as 45s, 12m, 3h or 2d, with one decimal while the number is small. */
static void print_span(char text[16], double s)
{
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};

    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(units) && s < units[i].seconds)
        i++;
    double n = s / units[i].seconds;
    snprintf(text, 16, n < 9.95 ? "%.1f%s" : "%.0f%s", n, units[i].unit);
}

/* Prints the VM's container, unless it is the command's own. */
static void print_where(const struct vm *vm)
{
    bool known = vm->container_id || vm->container_name;
    if (vm->other_container && known)
        printf("  (container %s%s%s)", vm->container_id ? vm->container_id : "",
               vm->container_id && vm->container_name ? " " : "",
               vm->container_name ? vm->container_name : "");
    else if (vm->other_container)
        fputs("  (container)", stdout);
    else if (vm->other_root)
        fputs("  (another root)", stdout);
    else if (vm->other_tmp)
        fputs("  (private /tmp)", stdout);
}

static void print_table(const struct vm_list *l)
{
    char uid[32], up[16], cpu[16];
    int version = 7, user = 4;
    for (size_t i = 0; i < l->vms.len; i++) {
        const struct vm *vm = &l->vms.data[i];
        version = text_wider(version, vm->version ? vm->version : "?", 40);
        user = text_wider(user, user_name(vm->uid, uid), 32);
    }
    printf("    PID  %-*s  %-*s     UP    CPU  PROGRAM\n", user, "USER", version, "VERSION");
    for (size_t i = 0; i < l->vms.len; i++) {
        const struct vm *vm = &l->vms.data[i];
        print_span(up, vm->uptime_s);
        print_span(cpu, vm->cpu_s);
        printf("%7d  %-*.*s  %-*.*s  %5s  %5s  ", vm->pid, user, user, user_name(vm->uid, uid),
               version, version, vm->version ? vm->version : "?", up, cpu);
        const char *command = vm->command ? vm->command : "?";
        bool cut = text_width(command, strlen(command)) > COMMAND_SHOWN;
        const char *attach = vm->attach_disabled              ? "  (attach disabled)"
                             : vm->unverified && !vm->listens ? "  (attach perhaps disabled)"
                             : !vm->dies_of_quit              ? ""
                             : vm->without_signals            ? "  (no attach: -Xrs)"
                                                              : "  (no attach: still starting)";
        const char *stopped = vm_is_stopped(vm) ? "  (stopped)" : "";
        printf("%.100s%s", command, cut ? "..." : "");
        print_where(vm);
        printf("%s%s\n", stopped, attach);
    }
}

static void put_vm(struct json *j, const struct vm *vm, bool inspected)
{
    json_begin_object(j);
    json_key_i64(j, "pid", vm->pid);
    json_key_i64(j, "inner_pid", vm->inner_pid);
    json_key_u64(j, "uid", vm->uid);
    json_key_string(j, "version", vm->version);
    json_key_string(j, "command", vm->command);
    json_key_bool(j, "container", vm->other_container);
    json_key_string(j, "container_id", vm->container_id);
    json_key_string(j, "container_name", vm->container_name);
    json_key_double(j, "uptime_s", vm->uptime_s);
    json_key_double(j, "cpu_s", vm->cpu_s);
    json_key_bool(j, "private_tmp", vm->other_tmp);
    json_key_bool(j, "other_root", vm->other_root);
    json_key_bool(j, "stopped", vm_is_stopped(vm));
    json_key_bool(j, "attachable", inspected && !vm_refusal(vm));
    json_key_bool(j, "inspected", inspected);
    json_end_object(j);
}

static void print_json(const struct vm_list *l)
{
    _cleanup_(buf_release) struct buf out = BUF(1 << 28);
    struct json j = {&out, false};
    json_begin_array(&j);
    for (size_t i = 0; i < l->vms.len; i++)
        put_vm(&j, &l->vms.data[i], true);
    for (size_t i = 0; i < l->left_out.len; i++)
        put_vm(&j, &l->left_out.data[i], false);
    json_end_array(&j);
    puts(buf_str(&out));
}

static int cmd_list(const struct command *self, int argc, char **argv)
{
    struct json_only options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    struct vm_list vms;
    int r = vm_list_read(&vms);
    if (r < 0)
        return complain_errno("list", "cannot read /proc", r);
    if (options.json)
        print_json(&vms);
    else
        print_table(&vms);
    target_report_left_out(&vms);
    vm_list_release(&vms);
    return 0;
}

const struct command command_list = {
    .name = "list",
    .run = cmd_list,
    .operands = "",
    .summary = "list the Java VMs of this machine",
    .related = "attach check top status",
    .description =
        "Use it to find the process id that the other commands take.\n\n"
        "Lists the VMs that can be seen, in all containers of the machine, with their user, "
        "version, time since they started, CPU time and program. A VM in a container is marked "
        "with the container's id, as its control group names it, and with its host name. VMs "
        "with a /tmp of their own (systemd's PrivateTmp=yes) and stopped ones are marked too.",
    .caveats =
        "The VMs of other users can be inspected only by root with CAP_SYS_PTRACE; a note says "
        "how many are left out, and in JSON they have *inspected* false.",
    .examples = "  jvmscope list\n",
    .sets = json_only_sets,
};
