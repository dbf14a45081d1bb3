/* task_file.h - where the definitions of tasks are, and a task made from one. Called by cmd_task.c and cmd_eval.c.
 *
 * A task is named by its file without .json, or by a path. It is looked for in --tasks DIR alone if that is given; else in
 * $XDG_DATA_HOME/mica/tasks (or ~/.local/share/mica/tasks), then in the share/mica/tasks beside the program's folder. */
#ifndef MICA_PROGRAMS_TASK_FILE_H
#define MICA_PROGRAMS_TASK_FILE_H
#include "load.h"
#include "mica/mica_tasks.h"

typedef struct mica_task_file {
    mica_task *task;
    mica_model *model;     /* NULL where the task needs none */
    mica_session *session; /* the same */
    mica_task_info info;
} mica_task_file;

/** Reads the definition of `name`, changes it as --label, --schema, --threshold and --rules-only ask, and opens what it needs.
 */
int mica_task_file_open(const mica_opts *o, const char *name, mica_task_file *file);
void mica_task_file_close(mica_task_file *file);

/** The labelled set eval/NAME.jsonl beside the definition of `name`. */
int mica_task_file_data(const mica_opts *o, const char *name, char path[4096]);

/** Lists all tasks on standard output: name, kind, description. */
int mica_task_file_list(const mica_opts *o);

/** Runs the task; *result is yours: json_decref(). */
int mica_task_file_run(mica_task_file *file, const mica_task_input *input, json_t **result);

#endif
