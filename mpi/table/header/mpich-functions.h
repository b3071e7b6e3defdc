
int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra_state, void *value_in, void *value_out, int *flag);
#define MPI_DUP_FN MPIR_Dup_fn
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)MPI_DUP_FN)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)MPI_DUP_FN)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)MPI_DUP_FN)
extern MPI_T_pvar_handle const MPI_T_PVAR_ALL_HANDLES;

typedef MPI_Comm_errhandler_function MPI_Handler_function;

/* A status in Fortran. */
typedef struct {
    MPI_Fint count_lo;
    MPI_Fint count_hi_and_cancelled;
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
} MPI_F08_status;
extern MPI_Fint *MPI_F_STATUS_IGNORE;
extern MPI_Fint *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *MPI_F08_STATUSES_IGNORE;
#define MADMPI_STATUS(from, to, name)                                                                       \
    int MPI_Status_##name(const from *, to *);                                                              \
    int PMPI_Status_##name(const from *, to *);
MADMPI_STATUS(MPI_Status, MPI_Fint, c2f)
MADMPI_STATUS(MPI_Fint, MPI_Status, f2c)
MADMPI_STATUS(MPI_Status, MPI_F08_status, c2f08)
MADMPI_STATUS(MPI_F08_status, MPI_Status, f082c)
MADMPI_STATUS(MPI_Fint, MPI_F08_status, f2f08)
MADMPI_STATUS(MPI_F08_status, MPI_Fint, f082f)
#undef MADMPI_STATUS

#define MPIX_GPU_SUPPORT_CUDA 0
#define MPIX_GPU_SUPPORT_ZE 1
#define MPIX_GPU_SUPPORT_HIP 2
int MPIX_GPU_query_support(int gpu_type, int *is_supported);
int MPIX_Query_cuda_support(void);
int MPIX_Query_ze_support(void);
int MPIX_Query_hip_support(void);

#define MPI_AINT_FMT_DEC_SPEC "%ld"
#define MPI_AINT_FMT_HEX_SPEC "%lx"

/* Files are pointers, the others are numbers in Fortran too. */
MPI_Fint MPI_File_c2f(MPI_File file);
MPI_File MPI_File_f2c(MPI_Fint file);
MPI_Fint PMPI_File_c2f(MPI_File file);
MPI_File PMPI_File_f2c(MPI_Fint file);
#define MPI_Comm_c2f(comm) ((MPI_Fint)(comm))
#define MPI_Comm_f2c(comm) ((MPI_Comm)(comm))
#define MPI_Type_c2f(datatype) ((MPI_Fint)(datatype))
#define MPI_Type_f2c(datatype) ((MPI_Datatype)(datatype))
#define MPI_Group_c2f(group) ((MPI_Fint)(group))
#define MPI_Group_f2c(group) ((MPI_Group)(group))
#define MPI_Info_c2f(info) ((MPI_Fint)(info))
#define MPI_Info_f2c(info) ((MPI_Info)(info))
#define MPI_Request_c2f(request) ((MPI_Fint)(request))
#define MPI_Request_f2c(request) ((MPI_Request)(request))
#define MPI_Op_c2f(op) ((MPI_Fint)(op))
#define MPI_Op_f2c(op) ((MPI_Op)(op))
#define MPI_Errhandler_c2f(errhandler) ((MPI_Fint)(errhandler))
#define MPI_Errhandler_f2c(errhandler) ((MPI_Errhandler)(errhandler))
#define MPI_Message_c2f(message) ((MPI_Fint)(message))
#define MPI_Message_f2c(message) ((MPI_Message)(message))
#define MPI_Win_c2f(win) ((MPI_Fint)(win))
#define MPI_Win_f2c(win) ((MPI_Win)(win))
#define MPI_Session_c2f(session) ((MPI_Fint)(session))
#define MPI_Session_f2c(session) ((MPI_Session)(session))
#define PMPI_Comm_c2f(comm) MPI_Comm_c2f(comm)
#define PMPI_Comm_f2c(comm) MPI_Comm_f2c(comm)
#define PMPI_Type_c2f(datatype) MPI_Type_c2f(datatype)
#define PMPI_Type_f2c(datatype) MPI_Type_f2c(datatype)
#define PMPI_Group_c2f(group) MPI_Group_c2f(group)
#define PMPI_Group_f2c(group) MPI_Group_f2c(group)
#define PMPI_Info_c2f(info) MPI_Info_c2f(info)
#define PMPI_Info_f2c(info) MPI_Info_f2c(info)
#define PMPI_Request_c2f(request) MPI_Request_c2f(request)
#define PMPI_Request_f2c(request) MPI_Request_f2c(request)
#define PMPI_Op_c2f(op) MPI_Op_c2f(op)
#define PMPI_Op_f2c(op) MPI_Op_f2c(op)
#define PMPI_Errhandler_c2f(errhandler) MPI_Errhandler_c2f(errhandler)
#define PMPI_Errhandler_f2c(errhandler) MPI_Errhandler_f2c(errhandler)
#define PMPI_Message_c2f(message) MPI_Message_c2f(message)
#define PMPI_Message_f2c(message) MPI_Message_f2c(message)
#define PMPI_Win_c2f(win) MPI_Win_c2f(win)
#define PMPI_Win_f2c(win) MPI_Win_f2c(win)
#define PMPI_Session_c2f(session) MPI_Session_c2f(session)
#define PMPI_Session_f2c(session) MPI_Session_f2c(session)
